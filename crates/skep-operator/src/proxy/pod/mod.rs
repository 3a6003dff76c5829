//! The Deployment of a proxy.

mod amounts;
mod auth_server;
mod container;
pub(super) mod env;
pub(crate) mod security;
mod strategic;
mod user_template;
pub(super) mod volumes;

#[cfg(test)]
pub(super) mod samples;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use skep_api::hash::{canonical_json, sha256_hex};
use skep_api::kinds::transport::ServerTransport;
use skep_api::names::annotations;

use super::metadata::with_additions;
use super::{Inputs, Target, rbac};
#[cfg(test)]
use {super::Proxied, super::Resolved, crate::settings::DefaultRedis, crate::settings::ProxySettings};

pub use user_template::parse_pod_template;

/// How long a proxy of an MCPServer may take to end, in seconds.
const TERMINATION_GRACE: i64 = 30;

/// Why there is no Deployment.
#[derive(Debug, thiserror::Error)]
pub enum PodError {
    /// `spec.podTemplateSpec` is none; see [`parse_pod_template`].
    #[error("{0}")]
    Template(String),
    /// `spec.resources` says something that is no amount.
    #[error("{0}")]
    Amount(String),
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The Deployment of the proxy. `checksum` is that of its RunConfig: a new one rolls the pods.
pub fn deployment(inputs: &Inputs<'_>, checksum: &str) -> Result<Deployment, PodError> {
    if let Some(resources) = container::resources(inputs) {
        amounts::check("spec.resources", &resources).map_err(PodError::Amount)?;
    }
    let overrides = inputs.deployment_overrides();
    let base = inputs.labels();
    let ours = match user_template::of(inputs) {
        Some(template) if matches!(inputs.target, Target::Remote(_)) => {
            let hash = sha256_hex(canonical_json(template)?.as_bytes());
            BTreeMap::from([(annotations::POD_TEMPLATE_SPEC_HASH.to_owned(), hash)])
        }
        _ => BTreeMap::new(),
    };
    Ok(Deployment {
        metadata: ObjectMeta {
            name: Some(inputs.common.name.to_owned()),
            labels: with_additions(base.clone(), overrides.map(|overrides| &overrides.labels)),
            annotations: with_additions(ours, overrides.map(|overrides| &overrides.annotations)),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: replicas(inputs),
            selector: LabelSelector { match_labels: Some(base), match_expressions: None },
            template: template(inputs, checksum)?,
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    })
}

/// How many proxies run. Absent, the number is somebody else's. A stdio backend has one input and so one proxy.
fn replicas(inputs: &Inputs<'_>) -> Option<i32> {
    match inputs.target {
        Target::Server(spec) if spec.transport == ServerTransport::Stdio => {
            inputs.common.replicas.map(|wanted| wanted.min(1))
        }
        Target::Server(_) | Target::Remote(_) => inputs.common.replicas,
    }
}

fn template(inputs: &Inputs<'_>, checksum: &str) -> Result<PodTemplateSpec, PodError> {
    let overrides = inputs.template_overrides();
    let ours = annotations(inputs, checksum);
    let (volumes, mounts) = volumes::mounted(inputs).into_iter().map(|mounted| (mounted.volume, mounted.mount)).unzip();
    let built = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: with_additions(inputs.labels(), overrides.map(|overrides| &overrides.labels)),
            annotations: with_additions(ours.clone(), overrides.map(|overrides| &overrides.annotations)),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            service_account_name: Some(rbac::proxy_account(inputs)),
            image_pull_secrets: inputs.image_pull_secrets(),
            termination_grace_period_seconds: match inputs.target {
                Target::Server(_) => Some(TERMINATION_GRACE),
                Target::Remote(_) => None,
            },
            security_context: Some(security::pod(inputs.settings.openshift)),
            containers: vec![container::container(inputs, mounts)?],
            volumes: Some(volumes),
            ..PodSpec::default()
        }),
    };
    match inputs.target {
        // The template of an MCPServer is for its backend, see `pod_patch`.
        Target::Server(_) => Ok(built),
        Target::Remote(_) => customised(inputs, built, ours),
    }
}

/// The template with the user's own merged over it. What pods are selected and rolled by stays ours.
fn customised(
    inputs: &Inputs<'_>,
    built: PodTemplateSpec,
    ours: BTreeMap<String, String>,
) -> Result<PodTemplateSpec, PodError> {
    let Some(patch) = user_template::of(inputs) else { return Ok(built) };
    let merged = strategic::merge(serde_json::to_value(built)?, &patch.0)
        .map_err(|error| PodError::Template(error.to_string()))?;
    let mut template: PodTemplateSpec =
        serde_json::from_value(merged).map_err(|error| PodError::Template(error.to_string()))?;
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels = with_additions(inputs.labels(), metadata.labels.as_ref());
    metadata.annotations = with_additions(ours, metadata.annotations.as_ref());
    Ok(template)
}

/// Annotations by which pods are rolled.
fn annotations(inputs: &Inputs<'_>, checksum: &str) -> BTreeMap<String, String> {
    let mut ours = BTreeMap::from([(annotations::RUN_CONFIG_CHECKSUM.to_owned(), checksum.to_owned())]);
    if matches!(inputs.target, Target::Server(_)) {
        ours.insert(annotations::MCP_SERVER_GENERATION.to_owned(), inputs.common.generation.to_string());
    }
    ours
}
