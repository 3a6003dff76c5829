//! What a ReplicaSet says about itself.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::super::error::ControllerError;
use super::super::pods;

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why the pods could not be brought to the right number.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) error: ControllerError,
}

pub(super) fn status(
    replica_set: &ReplicaSet,
    owned: &[&Pod],
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let spec = replica_set.spec.clone().unwrap_or_default();
    let minimum = pods::seconds(spec.min_ready_seconds);
    let labels = spec.template.and_then(|template| template.metadata?.labels).unwrap_or_default();
    let active: Vec<&Pod> = owned.iter().copied().filter(|pod| pods::is_active(pod)).collect();
    let counted = |wanted: &dyn Fn(&Pod) -> bool| pods::count(active.iter().filter(|pod| wanted(pod)).count());
    let terminating = owned.iter().filter(|pod| pods::is_terminating(pod) && !pods::is_finished(pod)).count();
    ReplicaSetStatus {
        replicas: i32::try_from(active.len()).unwrap_or(i32::MAX),
        fully_labeled_replicas: counted(&|pod| carries(pod, &labels)),
        ready_replicas: counted(&pods::is_ready),
        available_replicas: counted(&|pod| pods::is_available(pod, minimum, now)),
        terminating_replicas: Some(i32::try_from(terminating).unwrap_or(i32::MAX)),
        observed_generation: replica_set.metadata.generation,
        conditions: conditions(replica_set, failure, now),
    }
}

fn carries(pod: &Pod, labels: &BTreeMap<String, String>) -> bool {
    let own = pod.metadata.labels.as_ref();
    labels.iter().all(|(name, value)| own.and_then(|own| own.get(name)) == Some(value))
}

fn conditions(replica_set: &ReplicaSet, failure: Option<&Failure>, now: Timestamp) -> Option<Vec<ReplicaSetCondition>> {
    let known = replica_set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let (mine, mut kept): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|condition| condition.type_ == REPLICA_FAILURE);
    if let Some(failure) = failure {
        // The first refusal is kept: later ones differ in detail only, and rewriting them would be endless work.
        let same = mine.into_iter().find(|condition| condition.reason.as_deref() == Some(failure.reason));
        kept.push(same.unwrap_or_else(|| ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(failure.reason.to_owned()),
            message: Some(failure.error.server_message()),
            last_transition_time: Some(Time(now)),
        }));
    }
    Some(kept).filter(|conditions| !conditions.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_counted_by_state() {
        let replica_set: ReplicaSet = serde_json::from_value(json!({
            "metadata": {"generation": 4},
            "spec": {"minReadySeconds": 10, "selector": {}, "template": {"metadata": {"labels": {"a": "b"}}}},
        }))
        .unwrap();
        let ready = |since: &str| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]);
        let pods: Vec<Pod> = serde_json::from_value(json!([
            {"metadata": {"labels": {"a": "b"}},
             "status": {"phase": "Running", "conditions": ready("2026-01-01T00:00:00Z")}},
            {"metadata": {"labels": {"a": "b"}},
             "status": {"phase": "Running", "conditions": ready("2026-01-01T00:00:55Z")}},
            {"metadata": {}, "status": {"phase": "Pending"}},
            {"metadata": {}, "status": {"phase": "Failed"}},
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}},
        ]))
        .unwrap();
        let now = "2026-01-01T00:01:00Z".parse().unwrap();
        let status = status(&replica_set, &pods.iter().collect::<Vec<_>>(), None, now);
        let expected = json!({
            "replicas": 3, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 1,
            "terminatingReplicas": 1, "observedGeneration": 4,
        });
        assert_eq!(serde_json::to_value(status).unwrap(), expected);
    }
}
