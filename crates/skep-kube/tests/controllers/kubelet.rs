//! What a kubelet does, as far as controllers can tell: pods on a node become ready, terminating ones go.
//!
//! The image `bad` never starts; the annotation `test/ready: "false"` makes a running pod unready.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::cluster::NODE;

/// Keeps the node alive in the eyes of the controllers of Kubernetes.
pub(crate) async fn beat(client: Client) {
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

pub(crate) async fn run(client: Client) {
    let mut pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    let mut addresses = HashMap::new();
    while let Some(pod) = pods.next().await {
        if let Ok(pod) = pod {
            let next = addresses.len() + 1;
            let address = *addresses.entry(pod.uid().unwrap()).or_insert(next);
            // What fails now (a conflict, a pod that is gone) comes round again.
            let _ = settle(&client, &pod, address).await;
        }
    }
}

async fn settle(client: &Client, pod: &Pod, address: usize) -> Result<(), kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
    let spec = pod.spec.as_ref().unwrap();
    if pod.metadata.deletion_timestamp.is_some() {
        api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
        return Ok(());
    }
    if spec.node_name.is_none() || spec.containers.iter().any(|container| container.image.as_deref() == Some("bad")) {
        return Ok(());
    }
    let ready = if pod.annotations().get("test/ready").map(String::as_str) == Some("false") { "False" } else { "True" };
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    if conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == ready) {
        return Ok(());
    }
    let address = format!("10.244.{}.{}", address / 250, address % 250 + 1);
    let now = Timestamp::now().to_string();
    let status = json!({"status": {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
            {"type": "Ready", "status": ready, "lastTransitionTime": now},
        ],
    }});
    api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}
