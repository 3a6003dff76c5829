//! What configs and workloads name and the operator does not make: Secrets, ConfigMaps, groups, an account, and the
//! backends that proxies start.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::kinds::MCPGroup;
use skep_api::names::field_managers;

use super::place::{Place, forgive};
use super::random::Random;

/// Those of [`Example::good`](super::Example::good).
const SECRETS: [&str; 3] = ["secret-0", "secret-1", "secret-2"];
/// The ConfigMap with policies, and its key.
pub(super) const POLICIES: (&str, &str) = ("policies", "authz.json");
/// The ConfigMap with certificates, and its key.
const CERTIFICATES: (&str, &str) = ("ca", "ca.crt");
pub(super) const GROUPS: [&str; 2] = ["g", "h"];
/// The account that workloads name. Without it there are no new pods, and old ones stay: how it goes on with those depends on
/// what was before.
pub(super) const ACCOUNT: &str = "theirs";

/// Creates what configs and workloads name.
pub async fn prepare(place: &Place) -> kube::Result<()> {
    place.create::<ServiceAccount>(ACCOUNT, json!({})).await?;
    for name in SECRETS {
        place.create::<Secret>(name, secret("dg==")).await?;
    }
    Ok(())
}

/// One with the key that configs name. Members that are null are taken away.
fn secret(value: &str) -> Value {
    json!({"data": {"k": value, "other": null}})
}

fn policies(number: usize) -> String {
    let policy = format!("permit(principal == Client::\"{number}\", action, resource);");
    json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [policy], "entities_json": "[]"}}).to_string()
}

/// Creates an object that is not ours, or changes its data.
async fn write<K: kube::Resource<DynamicType = ()>>(place: &Place, name: &str, members: Value) -> kube::Result<()> {
    if place.create::<K>(name, members.clone()).await?.is_none() {
        place.merge::<K>(name, &members).await?;
    }
    Ok(())
}

/// Changes a Secret. Nobody watches those.
pub(super) async fn change_some_secret(place: &Place, random: &mut Random) -> kube::Result<()> {
    let name = random.pick(&SECRETS);
    match random.below(4) {
        0 => place.delete::<Secret>(name).await,
        1 => write::<Secret>(place, name, json!({"data": {"k": null, "other": "dg=="}})).await,
        2 => write::<Secret>(place, name, secret("dg==")).await,
        _ => write::<Secret>(place, name, secret("dw==")).await,
    }
}

/// Changes the policies or the certificates.
pub(super) async fn change_some_config_map(place: &Place, random: &mut Random) -> kube::Result<()> {
    let (name, key) = random.pick(&[POLICIES, CERTIFICATES]);
    let text = match random.below(5) {
        0 => return place.delete::<ConfigMap>(name).await,
        1 => return write::<ConfigMap>(place, name, json!({"data": {key: null, "other": "x"}})).await,
        2 => "{".to_owned(),
        number => policies(number),
    };
    write::<ConfigMap>(place, name, json!({"data": {key: text}})).await
}

/// Changes a group, or what its controller would say about it.
pub(super) async fn change_some_group(place: &Place, random: &mut Random) -> kube::Result<()> {
    let name = random.pick(&GROUPS);
    match random.below(4) {
        0 => place.delete::<MCPGroup>(name).await,
        1 => place.merge_status::<MCPGroup>(name, json!({"phase": "Pending"})).await,
        _ => write_group(place, name, json!({"phase": "Ready"})).await,
    }
}

async fn write_group(place: &Place, name: &str, status: Value) -> kube::Result<()> {
    place.write::<MCPGroup>(name, json!({})).await?;
    place.merge_status::<MCPGroup>(name, status).await
}

/// Makes everything that is named what it should be.
pub(super) async fn heal(place: &Place) -> kube::Result<()> {
    for name in SECRETS {
        write::<Secret>(place, name, secret("dg==")).await?;
    }
    for (name, key) in [POLICIES, CERTIFICATES] {
        write::<ConfigMap>(place, name, json!({"data": {key: policies(0)}})).await?;
    }
    for name in GROUPS {
        write_group(place, name, json!({"phase": "Ready"})).await?;
    }
    Ok(())
}

/// Makes another place have what this one has, and nothing else.
pub(super) async fn copy(from: &Place, to: &Place) -> kube::Result<()> {
    to.create::<ServiceAccount>(ACCOUNT, json!({})).await?;
    for name in SECRETS {
        if let Some(found) = from.all::<Secret>().get_opt(name).await? {
            to.create::<Secret>(name, json!({"data": found.data["data"]})).await?;
        }
    }
    for (name, _) in [POLICIES, CERTIFICATES] {
        if let Some(found) = from.all::<ConfigMap>().get_opt(name).await? {
            to.create::<ConfigMap>(name, json!({"data": found.data["data"]})).await?;
        }
    }
    for name in GROUPS {
        if let Some(found) = from.all::<MCPGroup>().get_opt(name).await? {
            write_group(to, name, json!({"phase": found.data["status"]["phase"]})).await?;
        }
    }
    Ok(())
}

/// A StatefulSet as the runner of a proxy writes it.
pub async fn run_backend(place: &Place, name: &str) -> kube::Result<()> {
    let backend = json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "labels": {"toolhive": "true", "toolhive-name": name}},
        "spec": {"serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "mcp", "image": "i"}]}}}});
    let params = PatchParams::apply(field_managers::PROXY_RUNNER).force();
    forgive(place.all::<StatefulSet>().patch(name, &params, &Patch::Apply(&backend)).await).map(drop)
}
