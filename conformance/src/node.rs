//! A node without containers: what a kubelet does, as far as controllers and kubectl can tell. Pods on it become ready,
//! terminating ones go.
//!
//! The image `bad` never starts; the annotation `test/ready: "false"` makes a running pod unready.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

/// The name of the node.
pub const NODE: &str = "node-1";

/// Adds the node to the cluster.
pub async fn join(client: Client) -> Result<(), kube::Error> {
    let api: Api<Node> = Api::all(client);
    let mut node = Node::default();
    node.metadata.name = Some(NODE.to_owned());
    api.create(&PostParams::default(), &node).await?;
    let capacity = json!({"cpu": "64", "memory": "256Gi", "pods": "500"});
    let status = json!({"status": {
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        "capacity": capacity, "allocatable": capacity,
    }});
    api.patch_status(NODE, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

/// Keeps the node alive in the eyes of the controllers of Kubernetes, for as long as it is polled.
pub async fn beat(client: Client) {
    let api: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    loop {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NODE}, "spec": {
            "holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": MicroTime(Timestamp::now())}});
        let parameters = PatchParams::apply("kubelet").force();
        // Too early is as good as never: the next beat comes soon.
        let _ = api.patch(NODE, &parameters, &Patch::Apply(&lease)).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

/// Brings pods to life, for as long as it is polled.
pub async fn run(client: Client) {
    let mut pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    let mut addresses = HashMap::new();
    while let Some(pod) = pods.next().await {
        if let Ok(pod) = pod {
            let next = addresses.len() + 1;
            let address = *addresses.entry(pod.uid().unwrap_or_default()).or_insert(next);
            // What fails now (a conflict, a pod that is gone) comes round again.
            let _ = settle(&client, &pod, address).await;
        }
    }
}

async fn settle(client: &Client, pod: &Pod, address: usize) -> Result<(), kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    if pod.metadata.deletion_timestamp.is_some() {
        api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
        return Ok(());
    }
    let Some(spec) = pod.spec.as_ref().filter(|spec| spec.node_name.is_some() && can_start(spec)) else {
        return Ok(());
    };
    let is_ready = pod.annotations().get("test/ready").map(String::as_str) != Some("false");
    let ready = if is_ready { "True" } else { "False" };
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    if conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == ready) {
        return Ok(());
    }
    let address = format!("10.244.{}.{}", address / 250, address % 250 + 1);
    let status = json!({"status": running(spec, is_ready, &address)});
    api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

fn can_start(spec: &PodSpec) -> bool {
    spec.containers.iter().all(|container| container.image.as_deref() != Some("bad"))
}

fn running(spec: &PodSpec, is_ready: bool, address: &str) -> Value {
    let now = Timestamp::now().to_string();
    let ready = if is_ready { "True" } else { "False" };
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": now});
    let container = |name: &str, image: Option<&str>| {
        json!({
            "name": name, "image": image, "imageID": "", "containerID": format!("none://{name}"), "restartCount": 0,
            "ready": is_ready, "started": true, "state": {"running": {"startedAt": now}},
        })
    };
    let containers: Vec<Value> = spec.containers.iter().map(|one| container(&one.name, one.image.as_deref())).collect();
    json!({
        "phase": "Running", "startTime": now, "hostIP": "10.0.0.7", "hostIPs": [{"ip": "10.0.0.7"}],
        "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [
            condition("Initialized", "True"), condition("PodScheduled", "True"),
            condition("ContainersReady", ready), condition("Ready", ready),
        ],
        "containerStatuses": containers,
    })
}
