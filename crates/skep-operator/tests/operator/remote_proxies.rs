//! MCPRemoteProxies: what is created for them, and what is wrong with them.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::{Value, json};
use skep_api::conditions::{self, ConditionStatus};
use skep_api::kinds::mcp_remote_proxy::MCPRemoteProxyPhase;
use skep_api::kinds::{MCPExternalAuthConfig, MCPRemoteProxy, MCPServer, MCPToolConfig};

use crate::cluster::Fixture;
use crate::trials;

trials![
    a_proxy_gets_everything,
    what_is_wrong_is_told,
    a_pod_template_is_merged_and_rests,
    tools_reach_the_configuration,
    two_kinds_of_one_name_do_not_fight,
    an_account_of_the_user_replaces_ours,
];

fn condition(proxy: &MCPRemoteProxy, type_: &str) -> Option<(ConditionStatus, String, String)> {
    let conditions = proxy.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let found = conditions::find(conditions, type_)?;
    Some((found.status, found.reason.clone(), found.message.clone()))
}

/// Whether everything of the proxy is in place: it has an address, and no pods, since there is no node.
pub fn is_settled(proxy: &MCPRemoteProxy) -> bool {
    proxy.status.as_ref().is_some_and(|status| {
        status.observed_generation == proxy.metadata.generation
            && status.phase == Some(MCPRemoteProxyPhase::Pending)
            && status.url.is_some()
    })
}

fn is_failed(proxy: &MCPRemoteProxy) -> bool {
    proxy.status.as_ref().is_some_and(|status| {
        status.observed_generation == proxy.metadata.generation && status.phase == Some(MCPRemoteProxyPhase::Failed)
    })
}

async fn run_config(fixture: &Fixture, name: &str) -> Value {
    let map = fixture.child::<ConfigMap>(name).await;
    serde_json::from_str(map["data"]["runconfig.json"].as_str().unwrap()).unwrap()
}

async fn a_proxy_gets_everything(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPRemoteProxy>("p", json!({"remoteUrl": "https://mcp.example.com/mcp"})).await;
    let proxy = fixture.until::<MCPRemoteProxy>("p", "settled", is_settled).await;
    assert_eq!(proxy.metadata.finalizers, None, "a remote proxy needs no finalizer");
    let status = proxy.status.as_ref().unwrap();
    let url = format!("http://mcp-p-remote-proxy.{}.svc.cluster.local:8080", fixture.namespace);
    assert_eq!(status.url.as_deref(), Some(url.as_str()));
    // Pods may be there already; there is no node that runs them.
    let message = status.message.as_deref().unwrap_or_default();
    assert!(["No pods found for remote proxy", "Remote proxy is starting"].contains(&message), "{message}");
    let (verdict, reason, _) = condition(&proxy, "Ready").unwrap();
    assert_eq!((verdict, reason.as_str()), (ConditionStatus::False, "DeploymentNotReady"));
    assert_eq!(condition(&proxy, "ConfigurationValid").unwrap().1, "ConfigurationValid");
    assert!(condition(&proxy, "AuthConfigured").is_none() && condition(&proxy, "GroupRefValidated").is_none());
    let document = run_config(&fixture, "p-runconfig").await;
    assert_eq!(
        (&document["remote_url"], &document["transport"], &document["host"], document.get("mcpserver_generation")),
        (&json!("https://mcp.example.com/mcp"), &json!("streamable-http"), &json!("0.0.0.0"), None)
    );
    let deployment = fixture.child::<Deployment>("p").await;
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["run", "--foreground=true", "placeholder-for-remote-proxy"]));
    fixture.child::<Service>("mcp-p-remote-proxy").await;
    fixture.child::<ServiceAccount>("p-remote-proxy-runner").await;
    fixture.quiet(&record).await;
    let before = record.writes().len();
    fixture.merge::<MCPRemoteProxy>("p", json!({"metadata": {"labels": {"a": "b"}}})).await;
    fixture.quiet(&record).await;
    assert_eq!(record.writes().len(), before);
}

async fn what_is_wrong_is_told(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let secret =
        json!({"addHeadersFromSecret": [{"headerName": "X-Key", "valueSecretRef": {"name": "none", "key": "k"}}]});
    let good = "https://mcp.example.com";
    for (name, spec, reason, text) in [
        ("loopback", json!({"remoteUrl": "http://127.0.0.1"}), "RemoteURLInvalid", "127.0.0.0/8"),
        ("private", json!({"remoteUrl": "http://10.0.0.1"}), "RemoteURLInvalid", "10.0.0.0/8"),
        (
            "map",
            json!({"remoteUrl": good, "authzConfig": {"type": "configMap", "configMap": {"name": "none"}}}),
            "AuthzConfigMapNotFound",
            "\"none\" not found",
        ),
        (
            "secret",
            json!({"remoteUrl": good, "headerForward": secret}),
            "HeaderSecretNotFound",
            "header \"X-Key\" not found",
        ),
        (
            "auth",
            json!({"remoteUrl": good, "externalAuthConfigRef": {"name": "none"}}),
            "ExternalAuthConfigFetchError",
            "none",
        ),
    ] {
        fixture.create::<MCPRemoteProxy>(name, spec).await;
        let proxy = fixture.until::<MCPRemoteProxy>(name, "failed", is_failed).await;
        let (status, found, message) = condition(&proxy, "ConfigurationValid").unwrap();
        assert_eq!((status, found.as_str()), (ConditionStatus::False, reason), "{name}");
        assert!(message.contains(text), "{name}: {message}");
        let told = proxy.status.as_ref().unwrap().message.clone().unwrap();
        assert_eq!(told, format!("Validation failed: {message}"));
        assert_eq!(condition(&proxy, "AuthConfigured").unwrap().1, "AuthInvalid");
        assert!(fixture.maybe_child::<Deployment>(name).await.is_none());
    }
    fixture.merge::<MCPRemoteProxy>("private", json!({"spec": {"allowPrivateEndpoint": true}})).await;
    let healed = fixture.until::<MCPRemoteProxy>("private", "settled", is_settled).await;
    assert!(condition(&healed, "AuthConfigured").is_none());
    fixture.create::<MCPExternalAuthConfig>("none", json!({"type": "unauthenticated"})).await;
    fixture.until::<MCPRemoteProxy>("auth", "settled", is_settled).await;
}

async fn a_pod_template_is_merged_and_rests(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    let template = json!({"metadata": {"labels": {"team": "a"}, "annotations": {"toolhive.stacklok.dev/runconfig-checksum": "mine"}},
        "spec": {"runtimeClassName": "kata", "containers": [{"name": "toolhive", "resources": {"limits": {"cpu": "500m"}}}]}});
    let overrides = json!({"proxyDeployment": {"annotations": {"x": "y"}}});
    let spec =
        json!({"remoteUrl": "https://mcp.example.com", "podTemplateSpec": template, "resourceOverrides": overrides});
    fixture.create::<MCPRemoteProxy>("p", spec).await;
    fixture.until::<MCPRemoteProxy>("p", "settled", is_settled).await;
    let deployment = fixture.child::<Deployment>("p").await;
    let pod = &deployment["spec"]["template"];
    assert_eq!((&pod["spec"]["runtimeClassName"], &pod["metadata"]["labels"]["team"]), (&json!("kata"), &json!("a")));
    assert_ne!(pod["metadata"]["annotations"]["toolhive.stacklok.dev/runconfig-checksum"], "mine");
    assert_eq!(pod["spec"]["containers"].as_array().unwrap().len(), 1);
    fixture.quiet(&record).await;
    let before = record.writes().len();
    fixture.merge::<MCPRemoteProxy>("p", json!({"metadata": {"labels": {"a": "b"}}})).await;
    fixture.quiet(&record).await;
    assert_eq!(record.writes().len(), before, "{:?}", &record.writes()[before..]);
}

async fn tools_reach_the_configuration(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPToolConfig>("t", json!({"toolsFilter": ["one"]})).await;
    let spec = json!({"remoteUrl": "https://mcp.example.com", "toolConfigRef": {"name": "t"}});
    fixture.create::<MCPRemoteProxy>("p", spec).await;
    let proxy = fixture.until::<MCPRemoteProxy>("p", "settled", is_settled).await;
    assert_eq!(condition(&proxy, "ToolConfigValidated").unwrap().2, "MCPToolConfig 't' is valid");
    assert_eq!(run_config(&fixture, "p-runconfig").await["tools_filter"], json!(["one"]));
    fixture.merge::<MCPToolConfig>("t", json!({"spec": {"toolsFilter": ["one", "two"]}})).await;
    let both = |map: &Value| map["data"]["runconfig.json"].as_str().is_some_and(|text| text.contains("\"two\""));
    fixture.until_child::<ConfigMap>("p-runconfig", "with both tools", both).await;
}

async fn two_kinds_of_one_name_do_not_fight(fixture: Fixture) {
    let (_operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("n", json!({"image": "i"})).await;
    fixture.until_child::<Deployment>("n", "there", |_| true).await;
    fixture.create::<MCPRemoteProxy>("n", json!({"remoteUrl": "https://mcp.example.com"})).await;
    let proxy = fixture.until::<MCPRemoteProxy>("n", "failed", is_failed).await;
    let message = condition(&proxy, "Ready").unwrap().2;
    assert!(message.contains("belongs to MCPServer n"), "{message}");
    let owner = |object: &Value| object["metadata"]["ownerReferences"][0]["kind"].clone();
    assert_eq!(owner(&fixture.child::<Deployment>("n").await), "MCPServer");
    assert_eq!(owner(&fixture.child::<ConfigMap>("n-runconfig").await), "MCPServer");
    fixture.quiet(&record).await;
}

async fn an_account_of_the_user_replaces_ours(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    fixture.create::<MCPRemoteProxy>("p", json!({"remoteUrl": "https://mcp.example.com"})).await;
    fixture.until::<MCPRemoteProxy>("p", "settled", is_settled).await;
    let ours = "p-remote-proxy-runner";
    // Named in the spec it stays, although nobody would make it now.
    fixture.merge::<MCPRemoteProxy>("p", json!({"spec": {"serviceAccount": ours}})).await;
    fixture.until::<MCPRemoteProxy>("p", "settled", is_settled).await;
    fixture.child::<ServiceAccount>(ours).await;
    fixture.merge::<MCPRemoteProxy>("p", json!({"spec": {"serviceAccount": "theirs"}})).await;
    fixture.until_child_gone::<ServiceAccount>(ours).await;
    fixture.until_child_gone::<Role>(ours).await;
    fixture.until_child_gone::<RoleBinding>(ours).await;
    let deployment = fixture.child::<Deployment>("p").await;
    assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], "theirs");
}
