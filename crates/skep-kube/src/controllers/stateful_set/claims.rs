//! The volume claims of a StatefulSet's pods, and with whom they go.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::super::ownership::controller_reference;
use super::identity::{ordinal, wanted_ordinals};

pub(super) fn claim_name(template: &str, pod: &str) -> String {
    format!("{template}-{pod}")
}

/// The claims of a pod as they are created.
pub(super) fn claims_of(set: &StatefulSet, pod: &str) -> Vec<PersistentVolumeClaim> {
    let Some(spec) = &set.spec else { return Vec::new() };
    let selected = spec.selector.match_labels.clone().unwrap_or_default();
    let templates = spec.volume_claim_templates.as_deref().unwrap_or_default();
    let claims = templates.iter().map(|template| {
        let mut labels = template.metadata.labels.clone().unwrap_or_default();
        labels.extend(selected.clone());
        let owners = (deleted_with(set).when_deleted && is_wanted(set, pod)).then(|| vec![controller_reference(set)]);
        PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(claim_name(template.metadata.name.as_deref().unwrap_or_default(), pod)),
                namespace: set.metadata.namespace.clone(),
                labels: Some(labels),
                annotations: template.metadata.annotations.clone(),
                owner_references: owners,
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        }
    });
    claims.collect()
}

struct Retention {
    when_deleted: bool,
    when_scaled: bool,
}

/// On which occasions claims are deleted instead of retained.
fn deleted_with(set: &StatefulSet) -> Retention {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.clone());
    let policy = policy.unwrap_or_default();
    let deletes = |choice: Option<&str>| choice == Some("Delete");
    Retention {
        when_deleted: deletes(policy.when_deleted.as_deref()),
        when_scaled: deletes(policy.when_scaled.as_deref()),
    }
}

fn is_wanted(set: &StatefulSet, pod: &str) -> bool {
    let number = ordinal(set.metadata.name.as_deref().unwrap_or_default(), pod);
    number.is_some_and(|number| wanted_ordinals(set).contains(&number))
}

/// The owners that a claim should have, if it does not: its set when it goes with the set, its pod when that pod is
/// about to be scaled away with its claim.
pub(super) fn wanted_owners(
    set: &StatefulSet,
    pod: &Pod,
    claim: &PersistentVolumeClaim,
) -> Option<Vec<OwnerReference>> {
    let retention = deleted_with(set);
    let wanted = is_wanted(set, pod.metadata.name.as_deref().unwrap_or_default());
    let by_pod = retention.when_scaled && !wanted;
    let by_set = retention.when_deleted && !by_pod;
    let owners = claim.metadata.owner_references.clone().unwrap_or_default();
    let mine = |reference: &OwnerReference| {
        let name = pod.metadata.name.as_deref();
        Some(&reference.uid) == set.metadata.uid.as_ref()
            || reference.kind == "Pod" && Some(reference.name.as_str()) == name
    };
    let mut settled: Vec<_> = owners.iter().filter(|reference| !mine(reference)).cloned().collect();
    if by_set {
        settled.push(controller_reference(set));
    }
    if by_pod {
        settled.push(controller_reference(pod));
    }
    (settled != owners).then_some(settled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_belong_to_whom_they_go_with() {
        let table = [
            ("Retain", "Retain", "db-0", None),
            ("Retain", "Delete", "db-0", Some("StatefulSet")),
            ("Retain", "Delete", "db-5", Some("StatefulSet")),
            ("Delete", "Retain", "db-0", None),
            ("Delete", "Retain", "db-5", Some("Pod")),
            ("Delete", "Delete", "db-0", Some("StatefulSet")),
            ("Delete", "Delete", "db-5", Some("Pod")),
        ];
        for (scaled, deleted, pod, expected) in table {
            let set: StatefulSet = serde_json::from_value(json!({
                "metadata": {"name": "db", "uid": "s"},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {},
                    "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"c": "d"}}}],
                    "persistentVolumeClaimRetentionPolicy": {"whenScaled": scaled, "whenDeleted": deleted}},
            }))
            .unwrap();
            let pod: Pod = serde_json::from_value(json!({"metadata": {"name": pod, "uid": "p"}})).unwrap();
            let mut claim = PersistentVolumeClaim::default();
            let owners = wanted_owners(&set, &pod, &claim);
            let kinds: Vec<_> = owners.iter().flatten().map(|owner| owner.kind.as_str()).collect();
            assert_eq!(kinds.first().copied(), expected, "{scaled} {deleted} {pod:?}");
            claim.metadata.owner_references = owners;
            assert!(wanted_owners(&set, &pod, &claim).is_none(), "nothing to write at rest");
            let new = claims_of(&set, "db-0");
            assert_eq!(new[0].metadata.name.as_deref(), Some("data-db-0"));
            assert_eq!(new[0].metadata.labels.as_ref().unwrap().len(), 2);
        }
    }
}
