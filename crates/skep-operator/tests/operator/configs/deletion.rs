//! Deletion waits for the last user, however wrong the spec, and then finishes on its own.

use kube::ResourceExt as _;
use serde_json::{Value, json};
use skep_api::conditions::{reasons, types};
use skep_api::kind::Kind as _;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPServerEntry,
    MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPServer,
};
use skep_conformance::changes::{Example as _, for_every_kind};
use skep_operator::cluster::OwnKind;

use super::{ConfigExample, caught_up, condition, is_blocked, is_used_by, is_valid, server_of, settings, start};
use crate::cluster::{Fixture, waiting};
use crate::trials;
use crate::wire::Faults;

trials![
    a_used_config_stays_until_its_last_user_goes,
    what_the_status_says_decides_nothing,
    a_user_that_no_watch_has_told_of_counts,
    auth_trap_84_an_auth_config_stays_while_any_kind_names_it,
];

async fn a_used_config_stays_until_its_last_user_goes(fixture: Fixture) {
    async fn hold<K: ConfigExample>(fixture: &Fixture) {
        let spec = K::bad().unwrap_or_else(|| K::good(1));
        let [one, two] = ["b", "a"].map(|name| format!("{}-{name}", K::DEFINITION.singular()));
        for server in [&one, &two] {
            fixture.create::<MCPServer>(server, server_of::<K>("c")).await;
        }
        fixture.create::<K>("c", spec).await;
        let both = [format!("MCPServer/{two}"), format!("MCPServer/{one}")];
        let both: Vec<&str> = both.iter().map(String::as_str).collect();
        fixture.until::<K>("c", "used", is_used_by(&both)).await;
        fixture.delete::<K>("c").await;
        let object = fixture.until::<K>("c", "kept", is_blocked).await;
        let blocked = condition(&object, types::DELETION_BLOCKED).unwrap();
        assert_eq!(blocked.reason, reasons::REFERENCED_BY_WORKLOADS);
        let list = format!("[{{MCPServer {two}}} {{MCPServer {one}}}]");
        assert_eq!(blocked.message, format!("Cannot delete: referenced by workloads: {list}"));

        fixture.delete::<MCPServer>(&two).await;
        let left = format!("MCPServer/{one}");
        let object = fixture.until::<K>("c", "used by one", is_used_by(&[&left])).await;
        assert!(is_blocked(&object));
        // The last one does not go, it names another object.
        fixture.merge::<MCPServer>(&one, json!({"spec": {K::MEMBER: K::reference("elsewhere")}})).await;
        fixture.until_gone::<K>("c").await;
        fixture.delete::<MCPServer>(&one).await;
    }
    let (operator, record) = start(&fixture).await;
    for_every_kind!(hold, &fixture);
    let failed: Vec<_> = record.answered_writes().await.into_iter().filter(|sent| sent.code != Some(200)).collect();
    assert!(failed.is_empty(), "no pass meets a conflict of its own making: {failed:#?}");
    let text = operator.metrics().text();
    let errors = text.lines().filter(|line| line.contains("reconcile_total") && line.contains("result=\"error\""));
    assert!(errors.clone().all(|line| line.ends_with(" 0")), "{:?}", errors.collect::<Vec<_>>());
}

async fn auth_trap_84_an_auth_config_stays_while_any_kind_names_it(fixture: Fixture) {
    /// One user after the other, each of them alone.
    async fn hold<K: ConfigExample, U: OwnKind>(fixture: &Fixture, spec: Value) {
        let user = U::DEFINITION.kind;
        fixture.create::<K>("c", K::good(1)).await;
        fixture.create::<U>("user", spec.clone()).await;
        fixture.until::<K>("c", "used", is_used_by(&[&format!("{user}/user")])).await;
        fixture.delete::<K>("c").await;
        let kept = fixture.until::<K>("c", "kept", is_blocked).await;
        let told = condition(&kept, types::DELETION_BLOCKED).unwrap().message;
        assert_eq!(told, format!("Cannot delete: referenced by workloads: [{{{user} user}}]"), "{spec}");
        assert_eq!(kept.finalizers().len(), 1, "{spec}");
        fixture.delete::<U>("user").await;
        fixture.until_gone::<K>("c").await;
    }
    let (_operator, _record) = start(&fixture).await;
    let (named, group) = (json!({"name": "c"}), json!({"name": "g"}));
    let oidc = json!({"name": "c", "audience": "a"});
    let server = |member: &str, reference: &Value| json!({"image": "i", member: reference});
    let proxy = |member: &str, reference: &Value| json!({"remoteUrl": "https://r.example", member: reference});
    for member in ["externalAuthConfigRef", "authServerRef"] {
        hold::<MCPExternalAuthConfig, MCPServer>(&fixture, server(member, &named)).await;
        hold::<MCPExternalAuthConfig, MCPRemoteProxy>(&fixture, proxy(member, &named)).await;
    }
    let entry = json!({"remoteUrl": "https://r.example", "transport": "sse", "groupRef": group,
        "externalAuthConfigRef": named});
    hold::<MCPExternalAuthConfig, MCPServerEntry>(&fixture, entry).await;
    let backend = json!({"type": "externalAuthConfigRef", "externalAuthConfigRef": named});
    for outgoing in [json!({"default": backend}), json!({"backends": {"b": backend}})] {
        let aggregate = json!({"groupRef": group, "incomingAuth": {"type": "anonymous"}, "outgoingAuth": outgoing});
        hold::<MCPExternalAuthConfig, VirtualMCPServer>(&fixture, aggregate).await;
    }
    hold::<MCPOIDCConfig, MCPServer>(&fixture, server("oidcConfigRef", &oidc)).await;
    hold::<MCPOIDCConfig, MCPRemoteProxy>(&fixture, proxy("oidcConfigRef", &oidc)).await;
    let incoming = json!({"type": "oidc", "oidcConfigRef": oidc});
    hold::<MCPOIDCConfig, VirtualMCPServer>(&fixture, json!({"groupRef": group, "incomingAuth": incoming})).await;
    hold::<MCPAuthzConfig, MCPServer>(&fixture, server("authzConfigRef", &named)).await;
    hold::<MCPAuthzConfig, MCPRemoteProxy>(&fixture, proxy("authzConfigRef", &named)).await;
    let incoming = json!({"type": "anonymous", "authzConfigRef": named});
    hold::<MCPAuthzConfig, VirtualMCPServer>(&fixture, json!({"groupRef": group, "incomingAuth": incoming})).await;
}

async fn what_the_status_says_decides_nothing(fixture: Fixture) {
    type Config = MCPOIDCConfig;
    let (operator, _record) = start(&fixture).await;
    for name in ["used", "unused"] {
        fixture.create::<Config>(name, Config::good(1)).await;
    }
    fixture.create::<MCPServer>("user", server_of::<Config>("used")).await;
    fixture.until::<Config>("used", "used", is_used_by(&["MCPServer/user"])).await;
    fixture.until::<Config>("unused", "unused", is_used_by(&[])).await;
    drop(operator);
    let nobody = json!({"status": {"referencingWorkloads": [], "referenceCount": 0}});
    let ghost =
        json!({"status": {"referencingWorkloads": [{"kind": "MCPServer", "name": "ghost"}], "referenceCount": 1}});
    fixture.merge_status::<Config>("used", nobody).await;
    fixture.merge_status::<Config>("unused", ghost).await;
    for name in ["used", "unused"] {
        fixture.delete::<Config>(name).await;
    }
    let (operator, _record) = start(&fixture).await;
    fixture.until_gone::<Config>("unused").await;
    let kept = fixture.until::<Config>("used", "kept", is_blocked).await;
    assert_eq!(super::users(&kept), ["MCPServer/user"]);
    // Should a watch miss that the last user goes, it is looked at again all the same.
    let waits = async || (waiting(&operator, Config::DEFINITION.kind) == 1).then_some(());
    fixture.eventually("another look", waits).await;
    caught_up::<Config>(&fixture, "marker").await;
    let kept = fixture.api::<Config>().get("used").await.unwrap();
    assert_eq!(kept.finalizers().len(), 1);
    fixture.delete::<MCPServer>("user").await;
    fixture.until_gone::<Config>("used").await;
}

async fn a_user_that_no_watch_has_told_of_counts(fixture: Fixture) {
    type Config = MCPWebhookConfig;
    fixture.create::<Config>("c", Config::good(1)).await;
    let (operator, _record) = fixture.operator_with(settings(), Faults::unwatched("/mcpservers")).await;
    fixture.until::<Config>("c", "valid", is_valid).await;
    fixture.create::<MCPServer>("user", server_of::<Config>("c")).await;
    fixture.delete::<Config>("c").await;
    let kept = fixture.until::<Config>("c", "kept", is_blocked).await;
    assert_eq!(super::users(&kept), ["MCPServer/user"]);
    // Nobody tells that it goes either: the config is looked at again by itself, every half a minute.
    let waits = async || (waiting(&operator, Config::DEFINITION.kind) == 1).then_some(());
    fixture.eventually("another look", waits).await;
    fixture.delete::<MCPServer>("user").await;
    fixture.until_gone::<Config>("c").await;
}
