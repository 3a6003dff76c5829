//! What people do to their objects.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};
use skep_api::names::annotations;

use super::examples::Example;
use super::place::Place;
use super::random::Random;
use super::{surroundings, workloads};
use crate::for_every_kind;

pub(super) const CONFIGS: [&str; 2] = ["a", "b"];
const SERVERS: [&str; 3] = ["x", "y", "z"];
const PROXIES: [&str; 2] = ["p", "q"];

/// Changes something. Secrets change only if they may: nobody watches them, so that somebody has to ask afterwards that
/// they are looked at ([`look_again`]).
pub(super) async fn change_something(place: &Place, random: &mut Random, secrets: bool) -> kube::Result<()> {
    match random.below(20) {
        0..=5 => change_some_config(place, random).await,
        6..=8 => place.write::<MCPServer>(random.pick(&SERVERS), workloads::server(random)).await,
        9..=10 => place.write::<MCPRemoteProxy>(random.pick(&PROXIES), workloads::proxy(random)).await,
        11 => place.delete::<MCPServer>(random.pick(&SERVERS)).await,
        12 => place.delete::<MCPRemoteProxy>(random.pick(&PROXIES)).await,
        13 => {
            let asked = json!({annotations::RESTARTED_AT: format!("2026-02-03T04:05:{:02}Z", random.below(60))});
            place.merge::<MCPServer>(random.pick(&SERVERS), &json!({"metadata": {"annotations": asked}})).await
        }
        14 => start_some_backend(place, random).await,
        15 => surroundings::change_some_group(place, random).await,
        16 => surroundings::change_some_config_map(place, random).await,
        17 if secrets => surroundings::change_some_secret(place, random).await,
        17..=18 => {
            let patch = json!({"spec": workloads::other_reference(random)});
            place.merge::<MCPServer>(random.pick(&SERVERS), &patch).await
        }
        _ => {
            let patch = json!({"spec": workloads::other_reference(random)});
            place.merge::<MCPRemoteProxy>(random.pick(&PROXIES), &patch).await
        }
    }
}

async fn start_some_backend(place: &Place, random: &mut Random) -> kube::Result<()> {
    let name = random.pick(&SERVERS);
    let server = place.all::<MCPServer>().get_opt(name).await?;
    // There is no proxy yet of one that no operator has seen, and that of one that is on its way out makes nothing.
    let is_run =
        |server: DynamicObject| !server.finalizers().is_empty() && server.metadata.deletion_timestamp.is_none();
    if server.is_some_and(is_run) {
        surroundings::run_backend(place, name).await?;
    }
    Ok(())
}

async fn change_some_config(place: &Place, random: &mut Random) -> kube::Result<()> {
    match random.below(6) {
        0 => change_config::<MCPAuthzConfig>(place, random).await,
        1 => change_config::<MCPExternalAuthConfig>(place, random).await,
        2 => change_config::<MCPOIDCConfig>(place, random).await,
        3 => change_config::<MCPTelemetryConfig>(place, random).await,
        4 => change_config::<MCPToolConfig>(place, random).await,
        _ => change_config::<MCPWebhookConfig>(place, random).await,
    }
}

async fn change_config<K: Example>(place: &Place, random: &mut Random) -> kube::Result<()> {
    let name = random.pick(&CONFIGS);
    let spec = match random.below(6) {
        0 => return place.delete::<K>(name).await,
        1 => K::bad(),
        2 => K::unlike(),
        _ => None,
    };
    let spec = spec.unwrap_or_else(|| K::good(random.below(3)));
    place.write::<K>(name, spec).await
}

/// Corrects everything that is wrong, and has it looked at.
pub(super) async fn heal(place: &Place) -> kube::Result<()> {
    async fn heal<K: Example>(place: &Place) -> kube::Result<()> {
        for name in CONFIGS {
            place.write::<K>(name, K::good(0)).await?;
        }
        Ok(())
    }
    surroundings::heal(place).await?;
    for_every_kind!(heal, place, ?);
    for name in SERVERS {
        place.merge::<MCPServer>(name, &json!({"spec": workloads::healed_server()})).await?;
    }
    for name in PROXIES {
        place.merge::<MCPRemoteProxy>(name, &json!({"spec": workloads::healed_proxy()})).await?;
    }
    look_again(place).await
}

/// Has the operator look at every workload.
pub(super) async fn look_again(place: &Place) -> kube::Result<()> {
    let patch = json!({"metadata": {"annotations": {"example.com/looked-at": Timestamp::now().to_string()}}});
    for name in SERVERS {
        place.merge::<MCPServer>(name, &patch).await?;
    }
    for name in PROXIES {
        place.merge::<MCPRemoteProxy>(name, &patch).await?;
    }
    Ok(())
}
