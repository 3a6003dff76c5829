//! What OpenShift writes onto our objects.

use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_operator::settings::{ProxySettings, Settings};

use crate::cluster::Fixture;
use crate::trials;
use crate::wire::Faults;

trials![its_pull_secrets_stay];

async fn its_pull_secrets_stay(fixture: Fixture) {
    let proxy = ProxySettings { openshift: true, ..ProxySettings::default() };
    let settings = Settings { proxy, ..Settings::default() };
    let (_operator, record) = fixture.operator_with(settings, Faults::none()).await;
    let account = "s-proxy-runner";
    let overrides = |name: &str| json!({"proxyDeployment": {"imagePullSecrets": [{"name": name}]}});
    let both = |name: &str| json!([{"name": name}, {"name": "s-proxy-runner-dockercfg-x7f2k"}]);
    fixture.create::<MCPServer>("s", json!({"image": "i", "resourceOverrides": overrides("mine")})).await;
    fixture.until_child::<ServiceAccount>(account, "there", |_| true).await;
    fixture.patch::<ServiceAccount>(account, json!({"imagePullSecrets": both("mine")})).await;
    fixture.quiet(&record).await;
    assert_eq!(fixture.child::<ServiceAccount>(account).await["imagePullSecrets"], both("mine"));

    fixture.merge::<MCPServer>("s", json!({"spec": {"resourceOverrides": overrides("other")}})).await;
    let has_both = |found: &serde_json::Value| found["imagePullSecrets"] == both("other");
    fixture.until_child::<ServiceAccount>(account, "with both", has_both).await;
}
