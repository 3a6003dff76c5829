//! The same objects in another namespace, where an operator has no troubles.

use std::time::Duration;

use anyhow::bail;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::{Value, json};
use skep_api::conditions::types;
use skep_api::kind::Kind;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};

use super::examples::Example;
use super::life::Life;
use super::place::Place;
use super::surroundings;
use crate::for_every_kind;

/// How often and how long a verdict is waited for.
const LOOKS: u32 = 6_000;
const PAUSE: Duration = Duration::from_millis(20);

/// A place with the same objects.
#[derive(Debug)]
pub struct Twin<'a> {
    original: &'a Place,
    place: Place,
}

impl<'a> Twin<'a> {
    /// Copies everything that is to stay, configs aside: those want an operator, which is to be started now.
    pub async fn of(life: &'a Life, place: Place) -> kube::Result<Self> {
        let original = life.place();
        surroundings::copy(original, &place).await?;
        copy_workloads::<MCPServer>(original, &place, "image").await?;
        copy_workloads::<MCPRemoteProxy>(original, &place, "remoteUrl").await?;
        for set in original.all::<StatefulSet>().list(&ListParams::default()).await? {
            if place.all::<MCPServer>().get_opt(&set.name_any()).await?.is_some() {
                surroundings::run_backend(&place, &set.name_any()).await?;
            }
        }
        Ok(Self { original, place })
    }

    /// Copies the configs. One that is to go has to have been seen before.
    pub async fn complete(&self) -> anyhow::Result<()> {
        for_every_kind!(copy, self, ?);
        Ok(())
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }
}

/// Copies workloads with their generation, which is part of what is built from them. `member` is changed until it is
/// reached.
async fn copy_workloads<K: Kind>(original: &Place, twin: &Place, member: &str) -> kube::Result<()> {
    for object in original.all::<K>().list(&ListParams::default()).await? {
        if object.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let (name, spec) = (object.name_any(), &object.data["spec"]);
        let generation = object.metadata.generation.unwrap_or(1);
        let value = |number: i64| {
            if number == generation { spec[member].clone() } else { json!(format!("https://before-{number}")) }
        };
        let mut first = spec.clone();
        first[member] = value(1);
        twin.create::<K>(&name, json!({"spec": first})).await?;
        for number in 2..=generation {
            twin.merge::<K>(&name, &json!({"spec": {member: value(number)}})).await?;
        }
    }
    Ok(())
}

async fn copy<K: Example>(twin: &Twin<'_>) -> anyhow::Result<()> {
    for object in twin.original.all::<K>().list(&ListParams::default()).await? {
        let name = object.name_any();
        twin.place.create::<K>(&name, json!({"spec": object.data["spec"]})).await?;
        until_judged::<K>(&twin.place, &name).await?;
        if object.metadata.deletion_timestamp.is_some() {
            twin.place.delete::<K>(&name).await?;
        }
    }
    Ok(())
}

async fn until_judged<K: Kind>(place: &Place, name: &str) -> anyhow::Result<()> {
    let is_verdict = |condition: &Value| condition["type"] == types::VALID;
    for _ in 0..LOOKS {
        let found = place.all::<K>().get_opt(name).await?;
        let conditions = found.as_ref().and_then(|object| object.data["status"]["conditions"].as_array());
        if conditions.is_some_and(|all| all.iter().any(is_verdict)) {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("{} {name} was never judged", K::DEFINITION.kind)
}
