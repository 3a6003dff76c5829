//! How many pods to make, and which ones to give up.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::super::ownership::{controller_of, controller_reference};
use super::super::pods;

/// Pods per pass; the rest follows when these have shown up.
const BURST: usize = 500;
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// What to do about the number of pods.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) create: usize,
    pub(super) delete: Vec<Arc<Pod>>,
}

/// Compares the pods that a ReplicaSet owns with what it wants. `neighbours` are all pods of the namespace.
pub(super) fn plan(replica_set: &ReplicaSet, owned: &[Arc<Pod>], neighbours: &[Arc<Pod>]) -> Plan {
    let wanted = replica_set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    let mut active: Vec<_> = owned.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    if active.len() <= wanted {
        return Plan { create: (wanted - active.len()).min(BURST), delete: Vec::new() };
    }
    let surplus = (active.len() - wanted).min(BURST);
    let crowd = crowd(replica_set, neighbours);
    active.sort_by_cached_key(|pod| expendability(pod, &crowd));
    active.truncate(surplus);
    Plan { create: 0, delete: active }
}

/// The new pod of a ReplicaSet.
pub(super) fn new_pod(replica_set: &ReplicaSet) -> Option<Pod> {
    let template = replica_set.spec.as_ref()?.template.as_ref()?;
    let namespace = replica_set.metadata.namespace.as_deref().unwrap_or_default();
    let mut pod = pods::from_template(template, namespace, controller_reference(replica_set));
    pod.metadata.generate_name = Some(format!("{}-", replica_set.metadata.name.as_deref().unwrap_or_default()));
    Some(pod)
}

/// How many active pods of the same Deployment (or of this ReplicaSet alone) each node runs.
fn crowd(replica_set: &ReplicaSet, neighbours: &[Arc<Pod>]) -> HashMap<String, usize> {
    let family = controller_of(&replica_set.metadata).map_or_else(
        || replica_set.metadata.name.clone().unwrap_or_default(),
        |deployment| format!("{}-", deployment.name),
    );
    let mut crowd = HashMap::new();
    for pod in neighbours.iter().filter(|pod| pods::is_active(pod)) {
        let related = controller_of(&pod.metadata)
            .is_some_and(|owner| owner.kind == "ReplicaSet" && owner.name.starts_with(&family));
        if let (true, Some(node)) = (related, pods::node_name(pod)) {
            *crowd.entry(node.to_owned()).or_default() += 1;
        }
    }
    crowd
}

/// Sorts the pod that is missed least first.
type Expendability =
    (bool, u8, bool, i32, Reverse<usize>, Option<Reverse<Timestamp>>, Reverse<i32>, Option<Reverse<Timestamp>>);

fn expendability(pod: &Pod, crowd: &HashMap<String, usize>) -> Expendability {
    let phase = match pods::phase(pod) {
        "Running" => 2,
        "Pending" => 0,
        _ => 1,
    };
    let annotations = pod.metadata.annotations.as_ref();
    let cost = annotations.and_then(|annotations| annotations.get(DELETION_COST)?.parse().ok()).unwrap_or(0);
    let neighbours = pods::node_name(pod).and_then(|node| crowd.get(node).copied()).unwrap_or(0);
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| Reverse(time.0));
    (
        pods::node_name(pod).is_some(),
        phase,
        pods::is_ready(pod),
        cost,
        Reverse(neighbours),
        pods::ready_since(pod).map(Reverse),
        Reverse(pods::restarts(pod)),
        created,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn replica_set(replicas: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web-1", "namespace": "n", "uid": "u"},
            "spec": {"replicas": replicas, "selector": {}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}},
        }))
        .unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
    fn pod(name: &str, overlay: Value) -> Arc<Pod> {
        let mut value = json!({
            "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "n1", "containers": []},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T01:00:00Z"}]},
        });
        json_patch::merge(&mut value, &overlay);
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn missing_pods_are_created() {
        let finished = pod("a", json!({"status": {"phase": "Failed"}}));
        let leaving = pod("b", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        let plan = plan(&replica_set(3), &[finished, leaving, pod("c", json!({}))], &[]);
        assert_eq!((plan.create, plan.delete.len()), (2, 0));
    }

    #[test]
    fn a_huge_number_comes_in_bursts() {
        assert_eq!(plan(&replica_set(100_000), &[], &[]).create, BURST);
    }

    #[test]
    fn the_least_missed_pod_goes_first() {
        let better = pod("better", json!({}));
        let worse = [
            json!({"spec": {"nodeName": null}}),
            json!({"status": {"phase": "Pending"}}),
            json!({"status": {"conditions": null}}),
            json!({"metadata": {"annotations": {DELETION_COST: "-1"}}}),
            json!({"status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T02:00:00Z"}]}}),
            json!({"status": {"containerStatuses": [
                {"name": "c", "restartCount": 3, "image": "", "imageID": "", "ready": true}]}}),
            json!({"metadata": {"creationTimestamp": "2026-01-01T00:30:00Z"}}),
        ];
        for overlay in worse {
            let worse = pod("worse", overlay.clone());
            for pods in [[better.clone(), worse.clone()], [worse, better.clone()]] {
                let plan = plan(&replica_set(1), &pods, &[]);
                let names: Vec<_> = plan.delete.iter().map(|pod| pod.metadata.name.as_deref()).collect();
                assert_eq!(names, [Some("worse")], "{overlay}");
            }
        }
    }

    #[test]
    fn the_fuller_node_gives_up_a_pod() {
        let of = json!({"metadata": {"ownerReferences": [
            {"kind": "ReplicaSet", "name": "web-1", "controller": true, "apiVersion": "apps/v1", "uid": "u"}]}});
        let mut elsewhere = of.clone();
        json_patch::merge(&mut elsewhere, &json!({"spec": {"nodeName": "n2"}}));
        let all = [pod("a", elsewhere), pod("b", of.clone()), pod("c", of)];
        let plan = plan(&replica_set(2), &all, &all);
        assert_ne!(plan.delete[0].metadata.name.as_deref(), Some("a"));
    }

    #[test]
    fn a_new_pod_carries_the_template_and_its_owner() {
        let pod = new_pod(&replica_set(1)).unwrap();
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-1-"));
        assert_eq!(pod.metadata.labels.unwrap()["app"], "web");
        assert_eq!(pod.metadata.owner_references.unwrap()[0].uid, "u");
    }
}
