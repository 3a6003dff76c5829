//! Containers that get sick, lose their readiness, or do not want to end.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;

use crate::cluster::{Cluster, SELF};
use crate::look::{STAY, eventually, field, script, told, until, with};
use crate::ports::{PORT, SERVER};

crate::trials![
    a_sick_container_is_started_again,
    who_is_not_ready_gets_no_connections,
    who_ignores_the_request_is_killed,
    a_failure_is_tried_again_and_a_success_is_not,
    loud_commands_are_heard_out,
];

/// A probe by a command, asked every second.
fn probe(command: &str) -> Value {
    json!({"exec": {"command": ["/bin/sh", "-c", command]}, "periodSeconds": 1, "failureThreshold": 1})
}

/// Fails once for every `touch /v/sick`: the probe itself takes the file away, so that the next run cannot fall ill of
/// what the one before had, however late its first command comes.
fn fails_once() -> Value {
    probe("! rm /v/sick 2>/dev/null")
}

fn scratch() -> Value {
    json!({"volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "Always"})
}

fn mounts() -> Value {
    json!([{"name": "v", "mountPath": "/v"}])
}

async fn a_sick_container_is_started_again(cluster: Arc<Cluster>) {
    let probes = json!({"livenessProbe": fails_once(), "volumeMounts": mounts()});
    cluster.pod_with("sick", json!([with(script(STAY), &probes)]), scratch()).await;
    until(&cluster, "sick", "{.status.containerStatuses[0].ready}", "true").await;
    assert_eq!(field(&cluster, "sick", "{.status.containerStatuses[0].restartCount}").await, "0");
    cluster.run(&["exec", "sick", "--", "touch", "/v/sick"]).await;
    told(&cluster, "sick", "Container main failed liveness probe, will be restarted").await;
    until(&cluster, "sick", "{.status.containerStatuses[0].restartCount}", "1").await;
    until(&cluster, "sick", "{.status.containerStatuses[0].ready}", "true").await;
}

async fn who_is_not_ready_gets_no_connections(cluster: Arc<Cluster>) {
    let labels = json!({"app": "moody"});
    let container = json!({"name": "main", "image": SELF, "args": [SERVER, "0.0.0.0"],
        "readinessProbe": probe("test -e /tmp/ready")});
    cluster.labelled_pod("moody", &labels, json!([container])).await;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "moody"}, "spec": {
            "selector": labels, "ports": [{"port": 80, "targetPort": PORT}]}}))
        .await;
    until(&cluster, "moody", "{.status.phase}", "Running").await;
    let address = cluster.run(&["get", "service", "moody", "-o", "jsonpath={.spec.clusterIP}"]).await.out;
    let is_open = || async { TcpStream::connect(format!("{address}:80")).await.is_ok() };
    let is_ready = |wanted: &'static str| {
        let cluster = cluster.clone();
        move || {
            let cluster = cluster.clone();
            async move {
                let slices = ["get", "endpointslices", "-l", "kubernetes.io/service-name=moody", "-o"];
                let path = "jsonpath={.items[*].endpoints[*].conditions.ready}";
                cluster.run(&[&slices[..], &[path]].concat()).await.out == wanted
            }
        }
    };
    eventually(is_ready("false")).await;
    assert!(!is_open().await, "nobody is ready");
    for (command, ready) in [("touch", "true"), ("rm", "false"), ("touch", "true")] {
        let said = cluster.run(&["exec", "moody", "--", command, "/tmp/ready"]).await;
        assert_eq!(said.code, 0, "{said:?}");
        eventually(is_ready(ready)).await;
        eventually(|| async { is_open().await == (ready == "true") }).await;
    }
    cluster.run(&["delete", "service", "moody"]).await;
}

async fn who_ignores_the_request_is_killed(cluster: Arc<Cluster>) {
    let deaf = "trap 'echo asked' TERM; echo here; while :; do sleep 0.1; done";
    let probes = json!({"livenessProbe": fails_once(), "volumeMounts": mounts()});
    let mut more = scratch();
    more["terminationGracePeriodSeconds"] = json!(3);
    cluster.pod_with("deaf", json!([with(script(deaf), &probes)]), more).await;
    until(&cluster, "deaf", "{.status.containerStatuses[0].ready}", "true").await;
    cluster.run(&["exec", "deaf", "--", "touch", "/v/sick"]).await;
    until(&cluster, "deaf", "{.status.containerStatuses[0].lastState.terminated.exitCode}", "137").await;
    let before = cluster.run(&["logs", "--previous", "deaf"]).await;
    assert!(before.out.contains("asked"), "{before:?}");
    until(&cluster, "deaf", "{.status.containerStatuses[0].ready}", "true").await;
    let mut log = cluster.kubectl(&["logs", "-f", "deaf"]).spawn().unwrap();
    let mut lines = BufReader::new(log.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("here"));
    let gone = cluster.run(&["delete", "pod", "deaf", "--timeout=60s"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    let mut rest = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        rest.push(line);
    }
    assert!(rest.contains(&"asked".to_owned()), "{rest:?}");
}

async fn a_failure_is_tried_again_and_a_success_is_not(cluster: Arc<Cluster>) {
    let text = "if [ -e /v/again ]; then exit 0; fi; touch /v/again; exit 1";
    let mut more = scratch();
    more["restartPolicy"] = json!("OnFailure");
    let container = with(script(text), &json!({"volumeMounts": mounts()}));
    cluster.pod_with("second-try", json!([container]), more).await;
    until(&cluster, "second-try", "{.status.phase}", "Succeeded").await;
    let path = "{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].state.terminated.exitCode} \
        {.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert_eq!(field(&cluster, "second-try", path).await, "1 0 1");
}

async fn loud_commands_are_heard_out(cluster: Arc<Cluster>) {
    // A pipe holds 64 KiB: whoever is not heard out gets stuck, or is killed by the end of it.
    let loud = "set -e; seq 1 50000; seq 1 50000 >&2";
    let hook = json!({"postStart": {"exec": {"command": ["/bin/sh", "-c", format!("{loud}; touch /v/begun")]}}});
    let more = json!({"lifecycle": hook, "readinessProbe": probe(&format!("{loud}; test -e /v/begun")),
        "volumeMounts": mounts()});
    cluster.pod_with("loud", json!([with(script(STAY), &more)]), scratch()).await;
    until(&cluster, "loud", "{.status.containerStatuses[0].ready}", "true").await;
    assert_eq!(field(&cluster, "loud", "{.status.containerStatuses[0].restartCount}").await, "0");
}
