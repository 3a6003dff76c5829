//! What the node tells about itself.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::cluster::Cluster;
use crate::look::eventually;

crate::trials![it_lives_and_says_so, what_it_can_do_is_declared, a_node_that_was_given_up_comes_back];

async fn it_lives_and_says_so(cluster: Arc<Cluster>) {
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    let renewed = || async {
        let lease = leases.get_opt(&cluster.node).await.unwrap()?.spec?;
        assert_eq!(lease.holder_identity.as_deref(), Some(cluster.node.as_str()));
        assert_eq!(lease.lease_duration_seconds, Some(40));
        lease.renew_time.map(|time| time.0)
    };
    eventually(|| async { renewed().await.is_some() }).await;
    let first = renewed().await;
    eventually(|| async { renewed().await > first }).await;
}

async fn what_it_can_do_is_declared(cluster: Arc<Cluster>) {
    // Read as kubectl does: not every client knows the field.
    let path = "jsonpath={.status.declaredFeatures[*]}";
    let said = cluster.run(&["get", "node", &cluster.node, "-o", path]).await;
    assert_eq!(said.out, "ExtendWebSocketsToKubelet", "{said:?}");
}

/// What a control plane writes that has not heard of the node for a while.
async fn a_node_that_was_given_up_comes_back(cluster: Arc<Cluster>) {
    let folder = tempfile::tempdir().unwrap();
    let node = cluster.another_node("silent", folder.path()).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let unknown = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"].map(|type_| {
        json!({"type": type_, "status": "Unknown", "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.", "lastTransitionTime": Timestamp::now().strftime("%FT%TZ").to_string()})
    });
    let patch = json!({"status": {"conditions": unknown}});
    let given_up = nodes.patch_status("silent", &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
    assert_eq!(
        conditions(&given_up),
        [("Ready", "Unknown"), ("MemoryPressure", "Unknown"), ("DiskPressure", "Unknown"), ("PIDPressure", "Unknown")]
            .map(owned)
    );
    eventually(|| async {
        let now = nodes.get("silent").await.unwrap();
        let wanted =
            [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")];
        let mut taints = now.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        conditions(&now) == wanted.map(owned) && !taints.any(|taint| taint.key == "node.kubernetes.io/unreachable")
    })
    .await;
    node.stop().await;
    cluster.run(&["delete", "node", "silent"]).await;
}

fn owned((type_, status): (&str, &str)) -> (String, String) {
    (type_.to_owned(), status.to_owned())
}

/// What the conditions of a node are, in the order of those that matter.
fn conditions(node: &Node) -> Vec<(String, String)> {
    let all: Vec<_> = node.status.iter().flat_map(|status| status.conditions.iter().flatten()).collect();
    let of_type = |type_: &str| {
        all.iter().find(|condition| condition.type_ == type_).map(|found| (found.type_.clone(), found.status.clone()))
    };
    ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"].into_iter().filter_map(of_type).collect()
}
