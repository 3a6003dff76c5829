//! Volumes beyond those of ConfigMaps and Secrets.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::look::{STAY, eventually, script, told, until, with};

crate::trials![
    a_claim_outlives_its_pods,
    the_pod_about_itself,
    a_volume_that_cannot_be_had_any_more_leaves_others_alone,
    a_path_of_the_machine_is_made,
    old_logs_go,
];

fn mounted(text: &str) -> Value {
    with(script(text), &json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}))
}

async fn a_claim_outlives_its_pods(cluster: Arc<Cluster>) {
    let folder = cluster.folder().join("claimed");
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "claimed"}, "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": folder}}}))
        .await;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "claimed",
            "resources": {"requests": {"storage": "1Mi"}}}}))
        .await;
    let claim = |read_only: bool| json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim", "readOnly": read_only}}]});
    cluster.pod_with("claims", json!([mounted("echo kept > /v/word")]), claim(false)).await;
    until(&cluster, "claims", "{.status.phase}", "Succeeded").await;
    assert_eq!(fs::read_to_string(folder.join("word")).unwrap(), "kept\n");
    let gone = cluster.run(&["delete", "pod", "claims", "--timeout=60s"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    let look = "cat /v/word; touch /v/other 2>/dev/null || echo read-only";
    cluster.pod_with("claims-again", json!([mounted(look)]), claim(true)).await;
    until(&cluster, "claims-again", "{.status.phase}", "Succeeded").await;
    assert_eq!(cluster.run(&["logs", "claims-again"]).await.out, "kept\nread-only\n");
}

async fn the_pod_about_itself(cluster: Arc<Cluster>) {
    let field = |path: &str, field: &str| json!({"path": path, "fieldRef": {"fieldPath": field}});
    let cpu = json!({"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "requests.cpu"}});
    let items = json!([field("name", "metadata.name"), field("mood", "metadata.annotations['mood']"), cpu]);
    let more = json!({"volumes": [{"name": "v", "downwardAPI": {"items": items, "defaultMode": 0o400}}]});
    let container = with(mounted(STAY), &json!({"resources": {"requests": {"cpu": "2"}}}));
    cluster.pod_with("mirror", json!([container]), more).await;
    until(&cluster, "mirror", "{.status.phase}", "Running").await;
    let read = |file: &'static str| {
        let cluster = cluster.clone();
        async move { cluster.run(&["exec", "mirror", "--", "cat", file]).await.out }
    };
    assert_eq!(
        (read("/v/name").await, read("/v/mood").await, read("/v/cpu").await),
        ("mirror".into(), String::new(), "2".into())
    );
    let rights = cluster.run(&["exec", "mirror", "--", "stat", "-Lc", "%a", "/v/name"]).await.out;
    assert_eq!(rights, "400\n");
    for mood in ["good", "better"] {
        let said = cluster.run(&["annotate", "--overwrite", "pod", "mirror", &format!("mood={mood}")]).await;
        assert_eq!(said.code, 0, "{said:?}");
        eventually(|| async { read("/v/mood").await == mood }).await;
    }
}

/// Both before and after it in the order of their names.
async fn a_volume_that_cannot_be_had_any_more_leaves_others_alone(cluster: Arc<Cluster>) {
    let map = |name: &str, word: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"word": word}});
    let names = ["first", "second", "third"];
    for name in names {
        cluster.apply(&map(name, "old")).await;
    }
    let mounts = names.map(|name| json!({"name": name, "mountPath": format!("/v/{name}")}));
    let volumes = names.map(|name| json!({"name": name, "configMap": {"name": name}}));
    let container = with(script(STAY), &json!({"volumeMounts": mounts}));
    cluster.pod_with("follows", json!([container]), json!({"volumes": volumes})).await;
    until(&cluster, "follows", "{.status.phase}", "Running").await;
    let gone = cluster.run(&["delete", "configmap", "second"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    let event = told(&cluster, "follows", "MountVolume.SetUp failed for volume").await;
    assert!(event.contains(r#""second" : configmap "second" not found"#), "{event}");
    for name in ["first", "third"] {
        cluster.apply(&map(name, "new")).await;
    }
    let words = || async { cluster.run(&["exec", "follows", "--", "sh", "-c", "cat /v/*/word"]).await.out };
    eventually(|| async { words().await == "newoldnew" }).await;
    cluster.apply(&map("second", "new")).await;
    eventually(|| async { words().await == "newnewnew" }).await;
}

async fn a_path_of_the_machine_is_made(cluster: Arc<Cluster>) {
    let folder = cluster.folder().join("made/on/demand");
    let more = json!({"volumes": [{"name": "v", "hostPath": {"path": folder}}]});
    cluster.pod_with("makes", json!([mounted("echo here > /v/word")]), more).await;
    until(&cluster, "makes", "{.status.phase}", "Succeeded").await;
    assert_eq!(fs::read_to_string(folder.join("word")).unwrap(), "here\n");
}

/// A container that fails three times leaves the logs of two runs.
async fn old_logs_go(cluster: Arc<Cluster>) {
    let text = "echo run >> /v/runs; cat /v/runs; [ $(wc -l < /v/runs) -ge 3 ]";
    let more = json!({"volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "OnFailure"});
    cluster.pod_with("forgets", json!([mounted(text)]), more).await;
    until(&cluster, "forgets", "{.status.phase}", "Succeeded").await;
    let uid = crate::look::field(&cluster, "forgets", "{.metadata.uid}").await;
    let logs = fs::read_dir(cluster.folder().join("node/logs").join(uid).join("main")).unwrap();
    let mut logs: Vec<_> = logs.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    logs.sort();
    assert_eq!(logs, ["1.log", "2.log"]);
    assert_eq!(cluster.run(&["logs", "forgets"]).await.out, "run\nrun\nrun\n");
    assert_eq!(cluster.run(&["logs", "--previous", "forgets"]).await.out, "run\nrun\n");
}
