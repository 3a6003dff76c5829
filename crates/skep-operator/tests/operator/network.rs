//! Permission profiles that are enforced: a NetworkPolicy for every server that may not use the whole network.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use skep_api::conditions::{self, types};
use skep_api::kinds::MCPServer;
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_operator::settings::{ProxySettings, Settings};

use crate::cluster::Fixture;
use crate::servers::settled;
use crate::trials;
use crate::wire::Faults;

trials![policies_follow_profiles, a_profile_that_cannot_be_read_is_told];

fn settings() -> Settings {
    let proxy = ProxySettings { enforce_network_profiles: true, ..ProxySettings::default() };
    Settings { proxy, ..Settings::default() }
}

fn builtin(name: &str) -> Value {
    json!({"spec": {"permissionProfile": {"type": "builtin", "name": name}}})
}

async fn policies_follow_profiles(fixture: Fixture) {
    let (operator, record) = fixture.operator_with(settings(), Faults::none()).await;
    fixture.create::<MCPServer>("open", json!({"image": "i"})).await;
    fixture
        .create::<MCPServer>("s", json!({"image": "i", "permissionProfile": {"type": "builtin", "name": "none"}}))
        .await;
    settled(&fixture, "open").await;
    let server = settled(&fixture, "s").await;
    assert!(fixture.maybe_child::<NetworkPolicy>("open-network").await.is_none());
    let policy = fixture.child::<NetworkPolicy>("s-network").await;
    assert_eq!(policy["metadata"]["ownerReferences"][0]["uid"], json!(server.metadata.uid));
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["spec"]["egress"], Value::Null);
    assert_eq!(policy["spec"]["podSelector"]["matchLabels"], json!({"app": "s", "toolhive": "true"}));
    // The backend is not started before its network is what it should be.
    let place = |part: &str| record.writes().iter().position(|sent| sent.path.ends_with(part)).unwrap();
    assert!(place("/networkpolicies/s-network") < place("/deployments/s"));
    fixture.quiet(&record).await;
    let before = record.writes().len();
    operator.resync();
    fixture.quiet(&record).await;
    assert_eq!(record.writes().len(), before);

    fixture.merge::<MCPServer>("s", builtin("network")).await;
    fixture.until_child_gone::<NetworkPolicy>("s-network").await;
    fixture.merge::<MCPServer>("s", builtin("stdio")).await;
    fixture.until_child::<NetworkPolicy>("s-network", "there again", |_| true).await;
    drop(operator);
    let (_operator, _record) = fixture.operator().await;
    fixture.until_child_gone::<NetworkPolicy>("s-network").await;
}

async fn a_profile_that_cannot_be_read_is_told(fixture: Fixture) {
    let (_operator, _record) = fixture.operator_with(settings(), Faults::none()).await;
    let profile = json!({"type": "configmap", "name": "profile", "key": "p"});
    fixture.create::<MCPServer>("s", json!({"image": "i", "permissionProfile": profile})).await;
    let says = async |part: &str| {
        let told = |server: &MCPServer| {
            server.status.as_ref().is_some_and(|status| {
                let verdict = conditions::find(&status.conditions, types::READY);
                status.phase == Some(MCPServerPhase::Failed)
                    && verdict.is_some_and(|found| found.message.contains(part))
            })
        };
        fixture.until::<MCPServer>("s", part, told).await;
    };
    says("permission profile ConfigMap \"profile\" not found").await;
    let maps: Api<ConfigMap> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let map = |text: &str| json!({"metadata": {"name": "profile"}, "data": {"p": text}});
    let first = serde_json::from_value(map("network: {outbound: {allow_port: many}}")).unwrap();
    maps.create(&PostParams::default(), &first).await.unwrap();
    says("permission profile ConfigMap \"profile\" is invalid").await;
    assert!(fixture.maybe_child::<k8s_openapi::api::apps::v1::Deployment>("s").await.is_none());

    let write = async |text: &str| {
        maps.patch("profile", &PatchParams::default(), &Patch::Merge(&map(text))).await.unwrap();
    };
    let port = |policy: &Value| policy["spec"]["egress"][0]["ports"][0]["port"].clone();
    for number in [443, 8443] {
        write(&format!("{{\"network\": {{\"outbound\": {{\"allow_port\": [{number}]}}}}}}")).await;
        fixture.until_child::<NetworkPolicy>("s-network", "for the port", |policy| port(policy) == number).await;
    }
    settled(&fixture, "s").await;
    write("network: {outbound: {insecure_allow_all: true}}").await;
    fixture.until_child_gone::<NetworkPolicy>("s-network").await;
}
