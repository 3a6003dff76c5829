//! The templates that a StatefulSet has had, kept as ControllerRevisions.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use super::super::error::ControllerError;
use super::super::hash::short_hash;
use super::super::ownership::controller_reference;
use super::identity::revision_of;

const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// The template that pods have and the one that they are to get. At rest the two are the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revisions {
    pub(super) current: String,
    pub(super) current_template: PodTemplateSpec,
    pub(super) update: String,
    pub(super) update_template: PodTemplateSpec,
}

/// What must happen before the pods can be looked at.
#[derive(Debug)]
pub(super) enum Settled {
    Ready(Box<Revisions>),
    Create(ControllerRevision),
    /// A template that was used before is used again: its revision becomes the newest.
    Renumber(ControllerRevision),
}

pub(super) fn settle(set: &StatefulSet, history: &[Arc<ControllerRevision>]) -> Result<Settled, ControllerError> {
    let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let data = patch_of(&template)?;
    let newest = history.iter().map(|revision| revision.revision).max().unwrap_or(0);
    let equal = history.iter().filter(|revision| revision.data.as_ref().is_some_and(|known| known.0 == data));
    let Some(update) = equal.max_by_key(|revision| revision.revision) else {
        return Ok(Settled::Create(new_revision(set, &template, data, newest.saturating_add(1))));
    };
    if update.revision < newest {
        let renumbered = ControllerRevision { revision: newest.saturating_add(1), ..update.as_ref().clone() };
        return Ok(Settled::Renumber(renumbered));
    }
    let update_name = update.metadata.name.clone().unwrap_or_default();
    let known = set.status.as_ref().and_then(|status| status.current_revision.as_deref());
    let current = history.iter().find(|revision| known.is_some() && revision.metadata.name.as_deref() == known);
    let (current, current_template) = match current.and_then(|revision| Some((revision, template_of(revision)?))) {
        Some((revision, template)) => (revision.metadata.name.clone().unwrap_or_default(), template),
        None => (update_name.clone(), template.clone()),
    };
    let revisions = Revisions { current, current_template, update: update_name, update_template: template };
    Ok(Settled::Ready(Box::new(revisions)))
}

/// The content of a revision: a strategic merge patch that puts the template in place.
fn patch_of(template: &PodTemplateSpec) -> Result<Value, ControllerError> {
    let mut template = serde_json::to_value(template)?;
    if let Value::Object(members) = &mut template {
        members.insert("$patch".to_owned(), json!("replace"));
    }
    Ok(json!({"spec": {"template": template}}))
}

fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

fn new_revision(set: &StatefulSet, template: &PodTemplateSpec, data: Value, revision: i64) -> ControllerRevision {
    let collisions = set.status.as_ref().and_then(|status| status.collision_count).filter(|count| *count > 0);
    let hash = short_hash(&data, collisions);
    let mut labels = template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default();
    labels.insert(HASH_LABEL.into(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", set.metadata.name.as_deref().unwrap_or_default())),
            namespace: set.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: set.metadata.annotations.clone(),
            owner_references: Some(vec![controller_reference(set)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision,
    }
}

impl Revisions {
    /// Revisions that nothing uses, beyond the limit; the oldest go first.
    pub(super) fn superfluous(
        &self,
        set: &StatefulSet,
        history: &[Arc<ControllerRevision>],
        pods: &[Arc<Pod>],
    ) -> Vec<Arc<ControllerRevision>> {
        let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let in_use = |revision: &ControllerRevision| {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            name == self.current || name == self.update || pods.iter().any(|pod| revision_of(pod) == Some(name))
        };
        let mut unused: Vec<_> = history.iter().filter(|revision| !in_use(revision)).cloned().collect();
        unused.sort_by_key(|revision| revision.revision);
        unused.truncate(unused.len().saturating_sub(limit));
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(image: &str, status: &Value) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": {"name": "db", "namespace": "n", "uid": "u"},
            "spec": {"revisionHistoryLimit": 1, "selector": {}, "template": {
                "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": image}]}}},
            "status": status,
        }))
        .unwrap()
    }

    fn created(set: &StatefulSet, history: &[Arc<ControllerRevision>]) -> Arc<ControllerRevision> {
        match settle(set, history).unwrap() {
            Settled::Create(revision) => Arc::new(revision),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn templates_become_numbered_revisions() {
        let first = created(&set("i:1", &json!({"replicas": 0})), &[]);
        assert_eq!(first.revision, 1);
        let second = created(&set("i:2", &json!({"replicas": 0})), std::slice::from_ref(&first));
        assert_eq!(second.revision, 2);
        let history = [first.clone(), second.clone()];
        let first_name = first.metadata.name.clone().unwrap();

        let rolling = set("i:2", &json!({"replicas": 0, "currentRevision": first_name}));
        let Settled::Ready(revisions) = settle(&rolling, &history).unwrap() else { panic!("not ready") };
        assert_eq!(revisions.current, first_name);
        assert_eq!(Some(&revisions.update), second.metadata.name.as_ref());
        let image = |template: &PodTemplateSpec| template.spec.as_ref().unwrap().containers[0].image.clone();
        assert_eq!(image(&revisions.current_template).as_deref(), Some("i:1"));
        assert_eq!(image(&revisions.update_template).as_deref(), Some("i:2"));

        let back = set("i:1", &json!({"replicas": 0, "currentRevision": second.metadata.name}));
        let Settled::Renumber(renumbered) = settle(&back, &history).unwrap() else { panic!("not renumbered") };
        assert_eq!((renumbered.revision, renumbered.metadata.name), (3, first.metadata.name.clone()));
    }

    #[test]
    fn unused_revisions_beyond_the_limit_are_superfluous() {
        let set = set("i:9", &json!({"replicas": 0}));
        let mut history: Vec<Arc<ControllerRevision>> = Vec::new();
        for image in ["i:1", "i:2", "i:3", "i:9"] {
            let mut other = set.clone();
            other.spec.as_mut().unwrap().template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
            history.push(created(&other, &history));
        }
        let Settled::Ready(revisions) = settle(&set, &history).unwrap() else { panic!("not ready") };
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "db-0", "labels": {
            "controller-revision-hash": history[0].metadata.name}}}))
        .unwrap();
        let surplus = revisions.superfluous(&set, &history, &[Arc::new(pod)]);
        let numbers: Vec<_> = surplus.iter().map(|revision| revision.revision).collect();
        assert_eq!(numbers, [2]);
    }
}
