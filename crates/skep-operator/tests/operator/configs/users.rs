//! Who uses a config: told by its own controller alone, as users come, change and go.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use serde_json::{Value, json};
use skep_api::kind::Kind as _;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPServerEntry,
    MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPServer,
};
use skep_conformance::changes::{Example as _, for_every_kind};
use skep_operator::settings::Settings;

use super::{ConfigExample, is_used_by, is_valid, server_of, start};
use crate::cluster::Fixture;
use crate::servers::settled;
use crate::trials;
use crate::wire::Faults;

trials![
    users_come_and_go,
    every_kind_of_user_counts,
    a_workload_changes_a_config_only_by_its_users,
    a_controller_watches_what_it_needs,
];

async fn a_controller_watches_what_it_needs(fixture: Fixture) {
    let only = |kind: &'static str| Settings { controllers: [kind].into(), ..Settings::default() };
    let (operator, record) = fixture.operator_with(only(MCPToolConfig::DEFINITION.kind), Faults::none()).await;
    fixture.create::<MCPToolConfig>("one", MCPToolConfig::good(1)).await;
    fixture.create::<MCPServer>("s", server_of::<MCPToolConfig>("one")).await;
    fixture.until::<MCPToolConfig>("one", "used", is_used_by(&["MCPServer/s"])).await;
    let users = ["mcpremoteproxies", "mcpserverentries", "mcpservers", "virtualmcpservers"];
    let expected: BTreeSet<String> = users.into_iter().chain(["mcptoolconfigs"]).map(str::to_owned).collect();
    assert_eq!(record.watched(), expected);
    drop(operator);

    let (_operator, record) = fixture.operator_with(only(MCPServer::DEFINITION.kind), Faults::none()).await;
    settled(&fixture, "s").await;
    let watched = record.watched();
    let unneeded: Vec<&str> = users.into_iter().filter(|other| *other != "mcpservers").collect();
    assert!(!unneeded.iter().any(|other| watched.contains(*other)), "{watched:?}");
    assert!(["mcptoolconfigs", "deployments", "pods"].iter().all(|needed| watched.contains(*needed)), "{watched:?}");
}

async fn users_come_and_go(fixture: Fixture) {
    async fn come_and_go<K: ConfigExample>(fixture: &Fixture) {
        let server = format!("{}-user", K::DEFINITION.singular());
        let user = format!("MCPServer/{server}");
        // It names something that is not there yet.
        fixture.create::<MCPServer>(&server, server_of::<K>("one")).await;
        fixture.create::<K>("two", K::good(2)).await;
        fixture.until::<K>("two", "unused", is_used_by(&[])).await;
        fixture.create::<K>("one", K::good(1)).await;
        fixture.until::<K>("one", "used", is_used_by(&[&user])).await;

        fixture.merge::<MCPServer>(&server, json!({"spec": {K::MEMBER: K::reference("two")}})).await;
        fixture.until::<K>("two", "used", is_used_by(&[&user])).await;
        fixture.until::<K>("one", "unused", is_used_by(&[])).await;
        fixture.merge::<MCPServer>(&server, json!({"spec": {K::MEMBER: null}})).await;
        fixture.until::<K>("two", "unused", is_used_by(&[])).await;
        fixture.merge::<MCPServer>(&server, json!({"spec": {K::MEMBER: K::reference("two")}})).await;
        fixture.until::<K>("two", "used", is_used_by(&[&user])).await;
        fixture.delete::<MCPServer>(&server).await;
        fixture.until::<K>("two", "unused", is_used_by(&[])).await;
    }
    let (_operator, record) = start(&fixture).await;
    for_every_kind!(come_and_go, &fixture);
    let elsewhere: Vec<_> = record.writes().into_iter().filter(|sent| !sent.path.contains("configs/")).collect();
    assert!(elsewhere.is_empty(), "config controllers write configs: {elsewhere:#?}");
}

async fn every_kind_of_user_counts(fixture: Fixture) {
    let (_operator, _record) = start(&fixture).await;
    fixture.create::<MCPOIDCConfig>("c", MCPOIDCConfig::good(1)).await;
    fixture.create::<MCPExternalAuthConfig>("c", MCPExternalAuthConfig::good(1)).await;
    fixture.create::<MCPToolConfig>("c", MCPToolConfig::good(1)).await;
    let oidc = json!({"name": "c", "audience": "a"});
    let named = json!({"name": "c"});
    // The same name in several kinds is no conflict, and naming an object twice counts once.
    let server = json!({"image": "i", "oidcConfigRef": oidc, "externalAuthConfigRef": named, "toolConfigRef": named,
        "authServerRef": {"kind": "MCPExternalAuthConfig", "name": "c"}});
    fixture.create::<MCPServer>("same", server).await;
    let proxy = json!({"remoteUrl": "https://r.example", "oidcConfigRef": oidc, "externalAuthConfigRef": named,
        "toolConfigRef": named});
    fixture.create::<MCPRemoteProxy>("same", proxy).await;
    let entry = json!({"remoteUrl": "https://r.example", "transport": "sse", "groupRef": {"name": "g"},
        "externalAuthConfigRef": named});
    fixture.create::<MCPServerEntry>("same", entry).await;
    let aggregate = json!({"groupRef": {"name": "g"}, "incomingAuth": {"type": "oidc", "oidcConfigRef": oidc},
        "outgoingAuth": {"default": {"type": "externalAuthConfigRef", "externalAuthConfigRef": named}},
        "config": {"aggregation": {"tools": [{"workload": "w", "toolConfigRef": named}]}}});
    fixture.create::<VirtualMCPServer>("same", aggregate).await;
    let three = ["MCPRemoteProxy/same", "MCPServer/same", "VirtualMCPServer/same"];
    let four = ["MCPRemoteProxy/same", "MCPServer/same", "MCPServerEntry/same", "VirtualMCPServer/same"];
    fixture.until::<MCPOIDCConfig>("c", "used by three", is_used_by(&three)).await;
    fixture.until::<MCPToolConfig>("c", "used by three", is_used_by(&three)).await;
    fixture.until::<MCPExternalAuthConfig>("c", "used by four", is_used_by(&four)).await;
}

/// With every controller that there is.
async fn a_workload_changes_a_config_only_by_its_users(fixture: Fixture) {
    type Config = MCPOIDCConfig;
    let (_operator, record) = fixture.operator().await;
    fixture.create::<Config>("c", Config::good(1)).await;
    let before = fixture.until::<Config>("c", "valid", is_valid).await;
    fixture.create::<MCPServer>("s", server_of::<Config>("c")).await;
    let used = fixture.until::<Config>("c", "used", is_used_by(&["MCPServer/s"])).await;
    for image in ["j", "k"] {
        fixture.merge::<MCPServer>("s", json!({"spec": {"image": image}})).await;
    }
    fixture.merge::<MCPServer>("s", json!({"spec": {"oidcConfigRef": null}})).await;
    let after = fixture.until::<Config>("c", "unused", is_used_by(&[])).await;
    assert_eq!((before.status.as_ref(), &before.spec), (after.status.as_ref(), &after.spec));
    assert_ne!(used.resource_version(), after.resource_version());

    let writes = record.writes_to("/mcpoidcconfigs/c/status");
    let members: Vec<Vec<&String>> =
        writes.iter().map(|sent| sent.body["status"].as_object().unwrap().keys().collect()).collect();
    let [_, users @ ..] = members.as_slice() else { panic!("{writes:#?}") };
    assert_eq!(users, [["referenceCount", "referencingWorkloads"], ["referenceCount", "referencingWorkloads"]]);
    assert_eq!(writes[1].body["status"]["referencingWorkloads"], json!([{"kind": "MCPServer", "name": "s"}]));
    // The list goes with its last entry.
    assert_eq!(writes[2].body["status"]["referencingWorkloads"], Value::Null);
    assert_eq!(record.writes_to("/mcpoidcconfigs/c").len(), 1, "the finalizer, once");
}
