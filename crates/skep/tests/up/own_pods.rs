//! Stdio servers of which each session has a pod.

use std::fs;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use skep_conformance::ports::free_port;
use snapbox::cmd::cargo_bin;

use super::asking::{self, Call};
use super::http::Request;
use super::machine::{Machine, eventually};
use super::servers::serve;

/// Which processes are taken, of the StatefulSet.
const TAKEN: &str = "toolhive.stacklok.dev/stdio-processes-taken";

/// A session, once there is a pod for it.
async fn begin(machine: &Machine, address: &str) -> String {
    let begun = std::sync::Mutex::new(None);
    eventually("a session begins", || async {
        let has_proxy = super::mcp::has_proxy(address);
        has_proxy.map_err(|error| format!("{error}\n{}", machine.said()))?;
        let session = asking::begin(address).ok_or_else(|| machine.said())?;
        *begun.lock().unwrap() = Some(session);
        Ok(())
    })
    .await;
    begun.into_inner().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_session_has_a_pod_where_that_is_asked_for() {
    let test = "each_session_has_a_pod_where_that_is_asked_for";
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    let metadata = json!({"annotations": {"toolhive.stacklok.dev/stdio-process-per-session": "true"}});
    // The first one is for clients without sessions.
    let spec = json!({"transport": "stdio", "backendReplicas": 3, "podTemplateSpec": {"metadata": metadata}});
    let address = serve(&machine, "own", spec).await;
    let sessions = [begin(&machine, &address).await, begin(&machine, &address).await];
    let calls = sessions.each_ref().map(|session| Call::begin(&address, session));
    for call in calls.into_iter().rev() {
        call.finish();
    }
    // A session that ends leaves its pod to another one, which finds a process that nobody has used.
    let restarts = |name: &'static str| async {
        let status = machine.pods().get(name).await.unwrap().status.unwrap();
        status.container_statuses.unwrap().iter().map(|container| container.restart_count).sum::<i32>()
    };
    let before = restarts("own-1").await + restarts("own-2").await;
    let end = Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &sessions[0]);
    assert_eq!(end.send(&address).status, 204);
    let next = begin(&machine, &address).await;
    Call::begin(&address, &next).finish();
    Call::begin(&address, &sessions[1]).finish();
    assert_eq!(restarts("own-1").await + restarts("own-2").await, before + 1);
    let pods = machine.pods().list(&ListParams::default().labels("app=own")).await.unwrap().items;
    let mut names: Vec<String> = pods.iter().map(kube::ResourceExt::name_any).collect();
    names.sort();
    assert_eq!(names, ["own-0", "own-1", "own-2"]);
}

/// A proxy beside the one of the operator, for the same server. Dropping it kills it.
struct Beside {
    child: Child,
    address: String,
}

impl Beside {
    /// Starts it as the operator starts the other one.
    async fn start(machine: &Machine, name: &str) -> Self {
        let maps: Api<ConfigMap> = Api::default_namespaced(machine.client.clone());
        let map = maps.get(&format!("{name}-runconfig")).await.unwrap();
        let mut document: Value = serde_json::from_str(&map.data.unwrap()["runconfig.json"]).unwrap();
        let port = free_port().unwrap();
        (document["host"], document["port"]) = (json!("127.0.0.1"), json!(port));
        let folder = machine.folder.path().join("beside");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("runconfig.json"), document.to_string()).unwrap();
        let deployments: Api<Deployment> = Api::default_namespaced(machine.client.clone());
        let pod = deployments.get(name).await.unwrap().spec.unwrap().template.spec.unwrap();
        let mut command = Command::new(cargo_bin!("skep"));
        command.args(pod.containers[0].args.as_ref().unwrap()).current_dir(&folder).stdin(Stdio::null());
        command.env("TOOLHIVE_RUNTIME", "kubernetes").env("KUBECONFIG", machine.folder.path().join("data/kubeconfig"));
        // A session for which there is no pod is told so before the test is over.
        command.env("TOOLHIVE_PROXY_REQUEST_TIMEOUT", "5s").stderr(fs::File::create(folder.join("log")).unwrap());
        Self { child: command.spawn().unwrap(), address: format!("127.0.0.1:{port}") }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_two_proxies_never_meet_in_a_pod() {
    let test = "sessions_of_two_proxies_never_meet_in_a_pod";
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    let metadata = json!({"annotations": {"toolhive.stacklok.dev/stdio-process-per-session": "true"}});
    let spec = json!({"transport": "stdio", "backendReplicas": 3, "podTemplateSpec": {"metadata": metadata}});
    let first = serve(&machine, "own", spec).await;
    let held = begin(&machine, &first).await;
    let begun = Call::begin(&first, &held);
    let beside = Beside::start(&machine, "own").await;
    let second = beside.address.clone();
    let other = begin(&machine, &second).await;
    // Each server asks its own client, and hears it.
    Call::begin(&second, &other).finish();
    begun.finish();
    // Both pods are taken, and the second proxy knows of one of them only from the first one.
    assert_eq!(asking::begin(&second), None);
    Call::begin(&first, &held).finish();
    // What the first one leaves is for the second one, and what that holds when it is killed is for the first one.
    assert_eq!(Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &held).send(&first).status, 204);
    let next = begin(&machine, &second).await;
    let calls = [&other, &next].map(|session| Call::begin(&second, session));
    calls.into_iter().rev().for_each(Call::finish);
    drop(beside);
    let last = begin(&machine, &first).await;
    Call::begin(&first, &last).finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_a_proxy_left_behind_is_met_by_nobody_and_replaced() {
    let test = "a_process_that_a_proxy_left_behind_is_met_by_nobody_and_replaced";
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    let metadata = json!({"annotations": {"toolhive.stacklok.dev/stdio-process-per-session": "true"}});
    let spec = json!({"transport": "stdio", "backendReplicas": 2, "podTemplateSpec": {"metadata": metadata}});
    let address = serve(&machine, "left", spec).await;
    let session = begin(&machine, &address).await;
    assert_eq!(Request::new("DELETE", "/mcp").header("Mcp-Session-Id", &session).send(&address).status, 204);
    // A proxy has claimed the next one, and was gone before it attached to it.
    let sets: Api<StatefulSet> = Api::default_namespaced(machine.client.clone());
    let taken = || async {
        let noted = sets.get("left").await.unwrap().annotations()[TAKEN].clone();
        serde_json::from_str::<Value>(&noted).unwrap()
    };
    let before = taken().await;
    let fresh = machine.until("left-1", "runs another process", |status| {
        let container = &status["containerStatuses"][0];
        container["state"]["running"].is_object() && container["containerID"] != before["left-1"]["container"]
    });
    let fresh = fresh.await["containerStatuses"][0]["containerID"].clone();
    let claim = json!({"left-1": {"container": fresh, "by": "left-gone", "process": "gone", "number": 0}});
    let patch = json!({"metadata": {"annotations": {TAKEN: claim.to_string()}}});
    sets.patch_metadata("left", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let session = begin(&machine, &address).await;
    Call::begin(&address, &session).finish();
    let after = taken().await;
    assert_ne!(after["left-1"]["container"], fresh);
    let proxy = machine.pods().get(after["left-1"]["by"].as_str().unwrap()).await.unwrap();
    assert_eq!(proxy.labels()["toolhive-name"], "left");
}
