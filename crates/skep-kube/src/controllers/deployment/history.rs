//! The ReplicaSets of a Deployment as its history: which one is current, what revision each one is, which are too old.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::hash::short_hash;
use super::super::ownership::controller_reference;
use super::REVISION;
use super::rollout::{Bounds, replicas};

const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
pub(super) const TEMPLATE_HASH: &str = "pod-template-hash";
/// The history must not outgrow what an annotation can hold.
const LONGEST_REVISION_HISTORY: usize = 2_000;
/// What a Deployment keeps to itself when its annotations go to its ReplicaSets.
const OWN_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
];

/// The ReplicaSet of the Deployment's template, the oldest one if there are several.
pub(super) fn find_new<'a>(
    deployment: &Deployment,
    replica_sets: &'a [Arc<ReplicaSet>],
) -> Option<&'a Arc<ReplicaSet>> {
    let wanted = without_hash(&deployment.spec.as_ref()?.template);
    let equal = replica_sets.iter().filter(|replica_set| {
        let template = replica_set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        template.is_some_and(|template| without_hash(template) == wanted)
    });
    equal.min_by_key(|replica_set| age_key(replica_set))
}

/// All others, the oldest first.
pub(super) fn old<'a>(replica_sets: &'a [Arc<ReplicaSet>], new: Option<&Arc<ReplicaSet>>) -> Vec<&'a Arc<ReplicaSet>> {
    let new = new.and_then(|new| new.metadata.uid.as_deref());
    let mut old: Vec<_> =
        replica_sets.iter().filter(|found| new.is_none() || found.metadata.uid.as_deref() != new).collect();
    old.sort_by_key(|replica_set| age_key(replica_set));
    old
}

pub(super) fn age_key(replica_set: &ReplicaSet) -> impl Ord + use<> {
    let created = replica_set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, replica_set.metadata.name.clone())
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(metadata) = &mut template.metadata {
        if let Some(labels) = &mut metadata.labels {
            labels.remove(TEMPLATE_HASH);
        }
        metadata.labels = metadata.labels.take().filter(|labels| !labels.is_empty());
        // The server may or may not have written the creation time of a template, which has none.
        metadata.creation_timestamp = None;
    }
    template.metadata = template.metadata.filter(|metadata| *metadata != ObjectMeta::default());
    template
}

pub(super) fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

pub(super) fn revision(replica_set: &ReplicaSet) -> i64 {
    annotation(&replica_set.metadata, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn next_revision(old: &[&Arc<ReplicaSet>]) -> i64 {
    old.iter().map(|replica_set| revision(replica_set)).max().unwrap_or(0).saturating_add(1)
}

/// The ReplicaSet of a new template, ready to be created.
pub(super) fn new_replica_set(
    deployment: &Deployment,
    old: &[&Arc<ReplicaSet>],
    replicas: i32,
    bounds: &Bounds,
) -> Option<ReplicaSet> {
    let spec = deployment.spec.as_ref()?;
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = short_hash(&serde_json::to_value(&spec.template).ok()?, collisions);
    let mut template = spec.template.clone();
    template.metadata.get_or_insert_default().labels.get_or_insert_default().insert(TEMPLATE_HASH.into(), hash.clone());
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(TEMPLATE_HASH.into(), hash.clone());
    let mut annotations = inherited(deployment);
    annotations.insert(REVISION.into(), next_revision(old).to_string());
    bounds.annotate(&mut annotations);
    Some(ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.metadata.name.as_deref()?)),
            namespace: deployment.metadata.namespace.clone(),
            labels: template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()),
            annotations: Some(annotations),
            owner_references: Some(vec![controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    })
}

/// The current ReplicaSet as it should be annotated, if it is not.
pub(super) fn refreshed(deployment: &Deployment, new: &ReplicaSet, old: &[&Arc<ReplicaSet>]) -> Option<ReplicaSet> {
    let mut wanted = new.clone();
    let annotations = wanted.metadata.annotations.get_or_insert_default();
    annotations.extend(inherited(deployment));
    let (current, next) = (revision(new), next_revision(old));
    if current < next {
        if current > 0 {
            remember(annotations, current);
        }
        annotations.insert(REVISION.into(), next.to_string());
    }
    if let (Some(spec), Some(from)) = (&mut wanted.spec, &deployment.spec) {
        let seconds = from.min_ready_seconds.filter(|seconds| *seconds > 0);
        if spec.min_ready_seconds.filter(|seconds| *seconds > 0) != seconds {
            spec.min_ready_seconds = seconds;
        }
    }
    (wanted != *new).then_some(wanted)
}

fn inherited(deployment: &Deployment) -> BTreeMap<String, String> {
    let annotations = deployment.metadata.annotations.clone().unwrap_or_default();
    annotations.into_iter().filter(|(name, _)| !OWN_ANNOTATIONS.contains(&name.as_str())).collect()
}

/// Adds a revision that this ReplicaSet once was; the oldest ones are forgotten first.
fn remember(annotations: &mut BTreeMap<String, String>, revision: i64) {
    let mut history = annotations.get(REVISION_HISTORY).cloned().unwrap_or_default();
    if !history.is_empty() {
        history.push(',');
    }
    history.push_str(&revision.to_string());
    while history.len() > LONGEST_REVISION_HISTORY {
        match history.find(',') {
            Some(end) => history.drain(..=end),
            None => return,
        };
    }
    annotations.insert(REVISION_HISTORY.into(), history);
}

/// Old, empty ReplicaSets beyond the limit.
pub(super) fn superfluous(deployment: &Deployment, old: &[&Arc<ReplicaSet>]) -> Vec<Arc<ReplicaSet>> {
    let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
    let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { return Vec::new() };
    let mut alive: Vec<_> = old.iter().filter(|found| found.metadata.deletion_timestamp.is_none()).collect();
    let surplus = alive.len().saturating_sub(limit);
    alive.sort_by_key(|replica_set| (revision(replica_set), age_key(replica_set)));
    alive.into_iter().take(surplus).filter(|replica_set| is_empty(replica_set)).map(|found| Arc::clone(found)).collect()
}

fn is_empty(replica_set: &ReplicaSet) -> bool {
    let status = replica_set.status.clone().unwrap_or_default();
    let observed = status.observed_generation >= replica_set.metadata.generation;
    status.replicas == 0 && replicas(replica_set) == 0 && observed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment() -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "d", "annotations": {
                "own": "1", REVISION: "7", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"replicas": 2, "revisionHistoryLimit": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}},
        }))
        .unwrap()
    }

    fn bounds() -> Bounds {
        Bounds::of(&deployment())
    }

    fn with_revision(revision: i64, created: &str) -> Arc<ReplicaSet> {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": format!("web-{revision}"), "uid": revision.to_string(), "generation": 1,
                    "creationTimestamp": created, "annotations": {REVISION: revision.to_string()}},
                "spec": {"replicas": 0, "selector": {}},
                "status": {"replicas": 0, "observedGeneration": 1},
            }))
            .unwrap(),
        )
    }

    #[test]
    fn a_new_replica_set_is_found_again_by_its_template() {
        let deployment = deployment();
        let new = Arc::new(new_replica_set(&deployment, &[], 2, &bounds()).unwrap());
        let hash = new.metadata.labels.as_ref().unwrap()[TEMPLATE_HASH].clone();
        assert_eq!(new.metadata.name, Some(format!("web-{hash}")));
        assert_eq!(new.spec.as_ref().unwrap().selector.match_labels.as_ref().unwrap()[TEMPLATE_HASH], hash);
        let annotations = new.metadata.annotations.clone().unwrap();
        let expected = json!({"own": "1", REVISION: "1", DESIRED_REPLICAS: "2", MAX_REPLICAS: "3"});
        assert_eq!(serde_json::to_value(annotations).unwrap(), expected);
        assert!(find_new(&deployment, std::slice::from_ref(&new)).is_some());
        assert!(refreshed(&deployment, &new, &[]).is_none(), "nothing to write at rest");
        let mut changed = deployment;
        changed.spec.as_mut().unwrap().template.spec.as_mut().unwrap().containers[0].image = Some("i:2".into());
        assert!(find_new(&changed, &[new]).is_none());
    }

    #[test]
    fn a_rollback_gives_an_old_replica_set_the_newest_revision() {
        let (first, second) = (with_revision(1, "2026-01-01T00:00:00Z"), with_revision(2, "2026-01-02T00:00:00Z"));
        let wanted = refreshed(&deployment(), &first, &[&second]).unwrap();
        assert_eq!(annotation(&wanted.metadata, REVISION), Some("3"));
        assert_eq!(annotation(&wanted.metadata, REVISION_HISTORY), Some("1"));
    }

    #[test]
    fn revision_history_forgets_its_beginning() {
        let mut annotations = BTreeMap::new();
        for revision in 1..2_000 {
            remember(&mut annotations, revision);
        }
        let history = &annotations[REVISION_HISTORY];
        assert!(history.len() <= LONGEST_REVISION_HISTORY && history.ends_with(",1999"), "{history}");
    }

    #[test]
    fn empty_replica_sets_beyond_the_limit_are_superfluous() {
        let all = [
            with_revision(3, "2026-01-01T00:00:00Z"),
            with_revision(1, "2026-01-02T00:00:00Z"),
            with_revision(2, "2026-01-03T00:00:00Z"),
        ];
        let old: Vec<_> = all.iter().collect();
        let names: Vec<_> = superfluous(&deployment(), &old).iter().map(|found| revision(found)).collect();
        assert_eq!(names, [1, 2]);
    }
}
