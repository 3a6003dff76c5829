//! `skep node` from outside: a machine joins a real control plane, which has no other node, and runs what it is given.
//!
//! The control plane listens on the loopback of this machine, at free ports; the pods and services of the node are in
//! namespaces of its own, as always.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cluster;
#[path = "../collected/mod.rs"]
mod collected;
#[path = "../demo/http.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod http;
mod kills;
#[path = "../layers/mod.rs"]
mod layers;
#[path = "../demo/npm.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod npm;
#[path = "../once/mod.rs"]
mod once;
#[path = "../outgoing/mod.rs"]
mod outgoing;
#[path = "../place/mod.rs"]
mod place;
#[path = "../prometheus/mod.rs"]
mod prometheus;
#[path = "../protected/mod.rs"]
mod protected;
#[path = "../provider/mod.rs"]
mod provider;
#[path = "../telemetry/mod.rs"]
mod readers;
mod servers;
#[path = "../suite/mod.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod suite;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use cluster::{Cluster, skep_node};
use serde_json::json;

const ALL: &[&str] = &["--isolation", "namespaces"];

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_joins_and_runs_what_it_is_given() {
    let Some(cluster) = Cluster::start_or_skip("a_machine_joins_and_runs_what_it_is_given").await else { return };
    let Some(node) = cluster.join(ALL) else { return };
    cluster.until("the node is ready", &["get", "node", "bee"], |text| text.contains(" Ready ")).await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let labels = json!({"app": "echo"});
    let container = json!({"name": "main", "image": "skep-demo/echo",
        "env": [{"name": "MCP_TRANSPORT", "value": "streamable-http"}, {"name": "MCP_HOST", "value": "0.0.0.0"}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}});
    cluster.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "echo"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "containers": [container]}}}}));
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "echo"}, "spec": {
        "type": "LoadBalancer", "selector": labels, "ports": [{"port": port, "targetPort": 8080}]}}));
    let rolled = cluster.kubectl(&["rollout", "status", "deployment/echo", "--timeout=100s"]);
    assert!(rolled.status.success(), "{rolled:?}\n{}", node.log());
    cluster.until("its port is open", &["get", "service", "echo", "-o", "yaml"], |_| answers(port)).await;

    let attached = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talks"}, "spec": {"containers": [{
        "name": "main", "image": "shell", "stdin": true, "args": ["while read line; do echo \"heard $line\"; done"]}]}});
    cluster.apply(&attached);
    cluster.until("it runs", &["get", "pod", "talks"], |text| text.contains("Running")).await;
    assert_eq!(cluster.said(&["exec", "talks", "--", "sh", "-c", "echo out"]), "out\n");
    let mut visitor = cluster.command(&["attach", "-i", "talks"]).stdin(Stdio::piped()).spawn().unwrap();
    visitor.stdin.as_ref().unwrap().write_all(b"one\n").unwrap();
    cluster.until("it has heard", &["logs", "talks"], |text| text == "heard one\n").await;
    visitor.kill().unwrap();
    visitor.wait().unwrap();

    // A pod reaches the API server by the name and the certificate that every pod knows.
    let ask = "exec 2>&1; T=/var/run/secrets/kubernetes.io/serviceaccount; \
        curl -sS --cacert $T/ca.crt -H \"Authorization: Bearer $(cat $T/token)\" https://kubernetes.default.svc/version";
    if std::process::Command::new("curl").arg("--version").output().is_ok() {
        let answer = cluster.said(&["exec", "talks", "--", "sh", "-c", ask]);
        assert!(answer.contains("gitVersion"), "{answer}");
    }

    a_deployment_is_mended_without_touching_its_neighbour(&cluster).await;

    refused(&cluster, "bee", "127.0.0.1:0", "skep node runs on ");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _holder = TcpListener::bind(taken).unwrap();
    let told = format!("port {} of 127.0.0.1 is in use by another program", taken.port());
    refused(&cluster, "other", &taken.to_string(), &told);

    let (code, log) = node.stopped().await;
    assert_eq!(code, Some(0), "{log}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "its ports go with it");
}

/// An image that cannot be had, next to the pod `talks`.
async fn a_deployment_is_mended_without_touching_its_neighbour(cluster: &Cluster) {
    let container = "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}";
    let neighbour = || cluster.said(&["get", "pod", "talks", "-o", container]);
    let before = neighbour();
    let labels = json!({"app": "broken"});
    cluster.apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "broken"}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [
            {"name": "main", "image": "no-such-image", "imagePullPolicy": "IfNotPresent", "args": ["exec sleep 1000"]}]}}}}));
    let pods = ["get", "pods", "-l", "app=broken"];
    cluster.until("its pod backs off", &pods, |text| text.contains("ImagePullBackOff")).await;
    cluster.said(&["set", "image", "deployment/broken", "main=shell"]);
    cluster.said(&["rollout", "status", "deployment/broken", "--timeout=100s"]);
    assert_eq!(neighbour(), before);
}

/// A second start on a folder, at an address, is refused with these words and a hint.
fn refused(cluster: &Cluster, folder: &str, listen: &str, words: &str) {
    let kubeconfig = cluster.folder().join("bee.kubeconfig");
    let arguments = ["--isolation", "none", "--listen", listen];
    let said = skep_node(&kubeconfig, &cluster.folder().join(folder), &arguments).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1), "{text}");
    assert!(text.contains(words) && text.contains("hint: "), "{text}");
}

/// Whether a web server speaks there.
fn answers(port: u16) -> bool {
    let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let request = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let mut answer = String::new();
    let asked = connection.write_all(request.as_bytes()).and_then(|()| connection.read_to_string(&mut answer));
    asked.is_ok() && answer.starts_with("HTTP/1.1 ")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_join_is_told_why() {
    let Some(cluster) = Cluster::start_or_skip("who_may_not_join_is_told_why").await else { return };
    let kubeconfig = cluster.kubeconfig_of("somebody");
    let said = skep_node(&kubeconfig, &cluster.folder().join("stranger"), &["--isolation", "none"]).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1), "{text}");
    assert!(text.contains("may not be node \"bee\"; it lacks: create nodes"), "{text}");
    assert!(text.contains("hint: ") && text.contains("deploy/node/roles.yaml"), "{text}");
}

#[test]
fn what_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent");
    let said = skep_node(&absent, folder.path(), &["--isolation", "none"]).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("cannot use the kubeconfig {}", absent.display())), "{text}");
    let said = skep_node(&absent, folder.path(), &["--listen", "0.0.0.0:1"]).output().unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert!(text.contains("0.0.0.0 is no address") && text.contains("hint: "), "{text}");
}
