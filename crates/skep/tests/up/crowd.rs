//! Many pods at once on a small machine: all of them come, all of them go, and nothing is left of them.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::footprint::Footprint;
use super::machine::{Machine, eventually};

fn deployment(replicas: usize) -> serde_json::Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "crowd"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "crowd"}},
        "template": {"metadata": {"labels": {"app": "crowd"}}, "spec": {"containers": [{
            "name": "echo", "image": "skep-demo/echo", "imagePullPolicy": "IfNotPresent",
            "args": ["--transport", "streamable-http", "--host", "0.0.0.0", "--port", "8080"],
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1}}],
            "volumes": [{"name": "scratch", "emptyDir": {}}]}}}})
}

/// Brings so many pods to life, and ends them; how long both took.
async fn come_and_go(machine: &Machine, number: usize) -> (Duration, Duration) {
    let deployments: Api<Deployment> = Api::default_namespaced(machine.client.clone());
    let scale = async |replicas: usize| {
        let parameters = PatchParams::apply("test").force();
        deployments.patch("crowd", &parameters, &Patch::Apply(deployment(replicas))).await.unwrap();
    };
    let pods = async || machine.pods().list(&ListParams::default().labels("app=crowd")).await.unwrap().items;
    let begun = Instant::now();
    scale(number).await;
    eventually("all are ready", || async {
        let status = deployments.get("crowd").await.unwrap().status.unwrap_or_default();
        let ready = status.ready_replicas.and_then(|ready| usize::try_from(ready).ok()).unwrap_or_default();
        if ready == number { Ok(()) } else { Err(format!("{ready} of {number}")) }
    })
    .await;
    let came = begun.elapsed();
    let addresses: HashSet<_> = pods().await.into_iter().map(|pod| pod.status.unwrap().pod_ip.unwrap()).collect();
    assert_eq!(addresses.len(), number, "each has an address of its own");
    let begun = Instant::now();
    scale(0).await;
    eventually("all are gone", || async {
        let left = pods().await.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} of {number} are there")) }
    })
    .await;
    (came, begun.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_comes_and_goes() {
    let Some(machine) = Machine::start_or_skip("a_crowd_comes_and_goes").await else { return };
    let number = if std::env::var_os("SKEP_SOAK").is_some() { 50 } else { 12 };
    // The first crowd opens what is kept for good, such as connections; the second must find everything as it was.
    come_and_go(&machine, number).await;
    let empty = Footprint::at_rest(&machine).await;
    let (came, gone) = come_and_go(&machine, number).await;
    eventually("nothing is left", || async {
        let now = Footprint::of(&machine);
        if now.is_within(&empty) { Ok(()) } else { Err(format!("{now:?}\nbefore: {empty:?}")) }
    })
    .await;
    let seconds = |time: Duration| time.as_secs_f64();
    println!("figure: {number} pods ready in {:.1} s, gone in {:.1} s; {empty:?}", seconds(came), seconds(gone));
}
