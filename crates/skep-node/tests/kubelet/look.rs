//! Pods that run scripts, and what is to be seen of them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Cluster, SHELL};

/// A container that runs a script.
pub fn script(text: &str) -> Value {
    json!({"name": "main", "image": SHELL, "command": ["/bin/sh", "-c", text]})
}

/// A script that stays until it is asked to end.
pub const STAY: &str = "trap 'exit 0' TERM; while :; do sleep 0.2; done";

/// A container with further members.
pub fn with(mut container: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        container[name] = value.clone();
    }
    container
}

/// What kubectl finds at a path of a pod.
pub async fn field(cluster: &Cluster, pod: &str, path: &str) -> String {
    cluster.run(&["get", "pod", pod, "-o", &format!("jsonpath={path}")]).await.out
}

/// Waits until a path of a pod has a value.
pub async fn until(cluster: &Cluster, pod: &str, path: &str, wanted: &str) {
    let condition = format!("--for=jsonpath={path}={wanted}");
    let said = cluster.run(&["wait", &format!("pod/{pod}"), &condition, "--timeout=60s"]).await;
    let status = field(cluster, pod, "{.status}").await;
    assert_eq!(said.code, 0, "{said:?} {status}");
}

/// The line of the event of a pod with this in it, once there is one.
pub async fn told(cluster: &Cluster, pod: &str, reason: &str) -> String {
    loop {
        let events = cluster.run(&["events", &format!("--for=pod/{pod}")]).await.out;
        if let Some(line) = events.lines().find(|line| line.contains(reason)) {
            return line.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until a question about the cluster is answered with yes.
pub async fn eventually<F: Future<Output = bool>>(mut question: impl FnMut() -> F) {
    while !question().await {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
