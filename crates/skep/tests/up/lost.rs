//! With which code a proxy ends whose server does not answer any more, and what it does when nobody wants one.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::http::Request;
use super::machine::{LIMIT, Machine, eventually};
use super::mcp::{has_proxy, initialize, until_served};
use super::servers::{adds, serve};

/// A server on HTTP behind a proxy that gives it up within a second, and has asked it something.
async fn impatient(machine: &Machine, name: &str) {
    let env = json!([
        {"name": "TOOLHIVE_HEALTH_CHECK_INTERVAL", "value": "200ms"},
        {"name": "TOOLHIVE_HEALTH_CHECK_RETRY_DELAY", "value": "200ms"},
        {"name": "TOOLHIVE_HEALTH_CHECK_PING_TIMEOUT", "value": "1s"},
    ]);
    let spec = json!({"transport": "streamable-http", "resourceOverrides": {"proxyDeployment": {"env": env}}});
    let address = serve(machine, name, spec).await;
    until_served(LIMIT, &address, || machine.said()).await;
    assert!(adds(&address));
}

/// Waits until the proxy of a server has ended, and tells with which code.
async fn code_of(machine: &Machine, name: &str) -> i32 {
    let code = std::sync::Mutex::new(0);
    eventually(&format!("the proxy of {name} ends"), || async {
        let of_server = ListParams::default().labels(&format!("toolhive-name={name}"));
        let pods = machine.pods().list(&of_server).await.map_err(|error| error.to_string())?.items;
        let proxy = pods.into_iter().find(|pod| pod.name_any() != format!("{name}-0")).ok_or("there is none")?;
        let state = proxy.status.and_then(|status| status.container_statuses?.into_iter().next()).ok_or("not yet")?;
        let ended = [state.last_state, state.state].into_iter().flatten().find_map(|state| state.terminated);
        *code.lock().unwrap() = ended.ok_or("it runs")?.exit_code;
        Ok(())
    })
    .await;
    code.into_inner().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn trap_59_a_proxy_that_has_lost_its_server_ends_with_one_unless_nobody_wants_the_server() {
    let test = "trap_59_a_proxy_that_has_lost_its_server_ends_with_one_unless_nobody_wants_the_server";
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    impatient(&machine, "away").await;
    impatient(&machine, "unwanted").await;
    let sets: Api<StatefulSet> = Api::default_namespaced(machine.client.clone());
    // Its pods are gone, and somebody may want them back.
    let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
    sets.patch("away", &PatchParams::default(), &none).await.unwrap();
    assert_eq!(code_of(&machine, "away").await, 1);
    sets.delete("unwanted", &DeleteParams::default()).await.unwrap();
    assert_eq!(code_of(&machine, "unwanted").await, 0);
}

/// The proxy of a server: its name, and how often its process was started again.
async fn proxy_of(machine: &Machine, name: &str) -> (String, i32) {
    let chosen = ListParams::default().labels(&format!("app=mcpserver,app.kubernetes.io/instance={name}"));
    let pods = machine.pods().list(&chosen).await.unwrap().items;
    let [pod] = pods.as_slice() else { panic!("{name} has {} proxies", pods.len()) };
    let containers = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    (pod.name_any(), containers.map(|container| container.restart_count).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_scaled_to_zero_is_told_and_waited_for() {
    let test = "a_server_that_is_scaled_to_zero_is_told_and_waited_for";
    let Some(machine) = Machine::start_or_skip(test).await else { return };
    machine.until_installed().await;
    let mut proxies = Vec::new();
    for transport in ["stdio", "streamable-http", "sse"] {
        let spec = json!({"transport": transport, "backendReplicas": 0});
        proxies.push((transport, serve(&machine, transport, spec).await));
    }
    for (name, address) in &proxies {
        eventually(&format!("{name} says that nobody wants it"), || async {
            has_proxy(address)?;
            let mut told = Request::post(&initialize()).send(address);
            let (status, retry) = (told.status, told.header("retry-after").map(str::to_owned));
            assert!(status == 503 && retry.is_some(), "{status} {retry:?}: {}", told.text());
            let said = told.text();
            if said.contains("the MCP server is scaled to zero") { Ok(()) } else { Err(said) }
        })
        .await;
    }
    let sets: Api<StatefulSet> = Api::default_namespaced(machine.client.clone());
    let one = Patch::Merge(json!({"spec": {"replicas": 1}}));
    for (name, address) in &proxies {
        let before = proxy_of(&machine, name).await;
        assert_eq!(before.1, 0, "it ended");
        sets.patch(name, &PatchParams::default(), &one).await.unwrap();
        until_served(LIMIT, address, || machine.said()).await;
        assert!(adds(address), "{name}");
        assert_eq!(proxy_of(&machine, name).await, before, "another one serves");
    }
}
