//! A node that is stopped and started again goes on with its pods.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::cluster::{Cluster, SHELL};
use crate::look::{STAY, eventually, field, script, until};

crate::trials![scratch_space_stays_and_what_comes_first_comes_first];

async fn scratch_space_stays_and_what_comes_first_comes_first(cluster: Arc<Cluster>) {
    let folder = tempfile::tempdir().unwrap();
    let node = cluster.another_node("returns", folder.path()).await;
    let mount = json!([{"name": "v", "mountPath": "/v"}]);
    let noting = |name: &str, text: &str| json!({"name": name, "image": SHELL, "command": ["/bin/sh", "-c", text], "volumeMounts": mount});
    let mut beside = noting("beside", &format!("echo beside >> /v/order; {STAY}"));
    beside["restartPolicy"] = "Always".into();
    let first = noting("first", "sleep 1; echo first >> /v/order");
    let more = json!({"nodeName": "returns", "restartPolicy": "Always", "initContainers": [first, beside],
        "volumes": [{"name": "v", "emptyDir": {}}]});
    cluster.pod_with("continues", json!([script(STAY)]), more).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    let uid = pods.get("continues").await.unwrap().uid().unwrap();
    let scratch = folder.path().join("node/scratch").join(&uid);
    let order = scratch.join("v/order");
    noted(&order, "first\nbeside\n").await;
    until(&cluster, "continues", "{.status.containerStatuses[0].ready}", "true").await;
    node.stop().await;
    assert_eq!(fs::read_to_string(&order).unwrap(), "first\nbeside\n", "the pod is not over");
    assert!(!folder.path().join("memory").join(&uid).exists(), "secrets are");
    let node = cluster.another_node("returns", folder.path()).await;
    noted(&order, "first\nbeside\nfirst\nbeside\n").await;
    until(&cluster, "continues", "{.status.containerStatuses[0].restartCount}", "1").await;
    assert_eq!(field(&cluster, "continues", "{.metadata.uid}").await, uid);
    let gone = cluster.run(&["delete", "pod", "continues", "--timeout=60s"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    eventually(|| std::future::ready(!scratch.exists())).await;
    node.stop().await;
    cluster.run(&["delete", "node", "returns"]).await;
}

/// Waits until a file has this text; it must not have any other that long.
async fn noted(path: &Path, text: &str) {
    let now = || fs::read_to_string(path).unwrap_or_default();
    eventually(|| std::future::ready(now().len() >= text.len())).await;
    assert_eq!(now(), text);
}
