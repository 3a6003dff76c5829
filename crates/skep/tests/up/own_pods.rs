//! Stdio servers of which each session has a pod.

use kube::api::ListParams;
use serde_json::json;

use super::asking::{self, Call};
use super::http::Request;
use super::machine::{Machine, eventually};
use super::servers::serve;

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
