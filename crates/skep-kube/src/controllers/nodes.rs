//! Keeps the taints that say whether a node is ready in step with its Ready condition.
//!
//! The API server gives every new node the not-ready taint; somebody has to take it away.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;
use serde_json::json;
use skep_control::{Key, Next, Queue, work};

use super::cluster::Cluster;
use super::error::{ControllerError, found};
use super::objects::Objects;

const SOURCE: &str = "node-controller";
const CONCURRENCY: usize = 1;
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

pub(super) struct Controller {
    nodes: Objects<Node>,
    queue: Arc<Queue<Key>>,
}

impl Controller {
    pub(super) fn new(cluster: &mut Cluster) -> Self {
        let nodes = cluster.objects::<Node>();
        let queue = Arc::new(Queue::default());
        let wake = queue.clone();
        nodes.cache().on_change(move |node| wake.add(Key::of(node)));
        Self { nodes, queue }
    }

    pub(super) async fn run(self) {
        self.nodes.cache().complete().await;
        work(SOURCE, &self.queue, CONCURRENCY, &(), |key| self.reconcile(key)).await;
    }

    async fn reconcile(&self, key: Key) -> Result<Next, ControllerError> {
        let Some(node) = self.nodes.get(&key) else { return Ok(Next::Rest) };
        if let Some(taints) = wanted_taints(&node) {
            let metadata = json!({"resourceVersion": node.resource_version()});
            let patch = json!({"metadata": metadata, "spec": {"taints": taints}});
            found(self.nodes.patch(&key, &patch).await)?;
        }
        Ok(Next::Rest)
    }
}

/// The taints of the node with ours as they should be, unless they are.
fn wanted_taints(node: &Node) -> Option<Vec<Taint>> {
    let spec = node.spec.clone().unwrap_or_default();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready").map(|ready| ready.status.as_str());
    let mut wanted = Vec::new();
    match ready {
        Some("True") => {}
        Some("Unknown") => wanted.push(UNREACHABLE),
        _ => wanted.push(NOT_READY),
    }
    if spec.unschedulable == Some(true) {
        wanted.push(UNSCHEDULABLE);
    }
    let taints = spec.taints.unwrap_or_default();
    let ours = |taint: &Taint| {
        taint.effect == "NoSchedule" && [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&taint.key.as_str())
    };
    let mut settled: Vec<Taint> =
        taints.iter().filter(|taint| !ours(taint) || wanted.contains(&taint.key.as_str())).cloned().collect();
    for key in wanted {
        if !settled.iter().any(|taint| ours(taint) && taint.key == key) {
            settled.push(Taint { key: key.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
        }
    }
    (settled != taints).then_some(settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_follow_readiness() {
        let foreign = json!({"key": "mine", "effect": "NoSchedule"});
        let not_ready = json!({"key": NOT_READY, "effect": "NoSchedule"});
        let unreachable = json!({"key": UNREACHABLE, "effect": "NoSchedule"});
        let table = [
            ("True", false, json!([not_ready, foreign]), Some(json!([foreign]))),
            ("True", false, json!([foreign]), None),
            ("False", false, json!([]), Some(json!([not_ready]))),
            ("Unknown", false, json!([not_ready]), Some(json!([unreachable]))),
            ("True", true, json!([]), Some(json!([{"key": UNSCHEDULABLE, "effect": "NoSchedule"}]))),
        ];
        for (ready, cordoned, taints, expected) in table {
            let node: Node = serde_json::from_value(json!({
                "spec": {"unschedulable": cordoned, "taints": taints},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap();
            let wanted = wanted_taints(&node).map(|taints| serde_json::to_value(taints).unwrap());
            assert_eq!(wanted, expected, "{ready} {cordoned} {taints}");
        }
    }
}
