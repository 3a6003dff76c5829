//! Policies and callbacks from end to end: what the operator writes is what the proxy goes by.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use super::machine::{LIMIT, Machine, eventually};
use super::mcp::until_served;
use super::protected::{self, ANOTHER_KEY, Client, DEPLOYMENT, KEY};
use super::servers::serve;

#[tokio::test(flavor = "multi_thread")]
async fn policies_and_callbacks_protect_a_server() {
    let Some(machine) = Machine::start_or_skip("policies_and_callbacks_protect_a_server").await else { return };
    machine.until_installed().await;
    for object in protected::callbacks() {
        machine.apply(&object.to_string()).await;
    }
    let mut addresses = Vec::new();
    for (name, transport) in [("lines", "stdio"), ("streamable", "streamable-http")] {
        let address = serve(&machine, name, protected::spec(name, transport)).await;
        until_served(LIMIT, &address, || machine.said()).await;
        Client::begin(&address).unwrap().check(KEY);
        addresses.push(address);
    }
    let clients = addresses.iter().map(|address| Client::begin(address).unwrap()).collect::<Vec<_>>();
    // The sessions go on: it is the proxy that runs which gets the new keys.
    machine.apply(&protected::rotated().to_string()).await;
    for client in &clients {
        eventually("the new keys have reached both", || async { client.is_signed_with(ANOTHER_KEY) }).await;
        client.check(ANOTHER_KEY);
    }
    // Nothing passes while nobody can be asked about it.
    let deployments: Api<Deployment> = Api::default_namespaced(machine.client.clone());
    deployments.delete(DEPLOYMENT, &DeleteParams::default()).await.unwrap();
    for client in clients {
        eventually("the callbacks are missed", || async {
            let (status, answer) = client.call("add", &json!({"a": 2, "b": 3}));
            let is_missed = status == 500 && answer["error"]["message"] == "Webhook error";
            if is_missed { Ok(()) } else { Err(format!("{status}: {answer}")) }
        })
        .await;
    }
}
