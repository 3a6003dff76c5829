//! A node that is stopped and started again goes on with its pods.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::cluster::{Cluster, SHELL};
use crate::look::{STAY, eventually, field, script, until, with};

crate::trials![
    scratch_space_stays_and_what_comes_first_comes_first,
    a_node_that_stops_does_not_wait_for_pods_that_end_already
];

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

/// Longer than a test may take.
const GRACE: u32 = 3_600;

async fn a_node_that_stops_does_not_wait_for_pods_that_end_already(cluster: Arc<Cluster>) {
    let folder = tempfile::tempdir().unwrap();
    let node = cluster.another_node("hurries", folder.path()).await;
    let mount = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let deaf = with(script("trap 'echo asked >> /v/asked' TERM; echo > /v/begun; while :; do sleep 0.1; done"), &mount);
    // The same before it is asked.
    let mut hooked = with(script("trap '' TERM; echo > /v/there; while :; do sleep 0.1; done"), &mount);
    hooked["name"] = "hooked".into();
    hooked["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", GRACE.to_string()]}}});
    let more = json!({"nodeName": "hurries", "terminationGracePeriodSeconds": GRACE,
        "volumes": [{"name": "v", "emptyDir": {}}]});
    cluster.pod_with("lingers", json!([deaf, hooked]), more).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    let uid = pods.get("lingers").await.unwrap().uid().unwrap();
    let volume = folder.path().join("node/scratch").join(&uid).join("v");
    eventually(|| std::future::ready(["begun", "there"].iter().all(|name| volume.join(name).exists()))).await;
    cluster.run(&["delete", "pod", "lingers", "--wait=false"]).await;
    noted(&volume.join("asked"), "asked\n").await;
    assert!(pods.get_opt("lingers").await.unwrap().is_some(), "it has time");
    node.stop().await;
    assert!(pods.get_opt("lingers").await.unwrap().is_none(), "it is gone with all of it");
    cluster.run(&["delete", "node", "hurries"]).await;
}

/// Waits until a file has this text; it must not have any other that long.
async fn noted(path: &Path, text: &str) {
    let now = || fs::read_to_string(path).unwrap_or_default();
    eventually(|| std::future::ready(now().len() >= text.len())).await;
    assert_eq!(now(), text);
}
