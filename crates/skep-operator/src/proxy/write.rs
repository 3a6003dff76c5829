//! The objects of a workload, written in the order in which they need each other.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use serde::de::DeserializeOwned;
use skep_api::kinds::transport::ServerTransport;
use skep_api::names::mcp_server;
use skep_control::Key;

use super::gather::{HasKey, has_key};
use super::run_config::{self, BuildError};
use super::{Inputs, Proxied, Target, network_policy, pod, rbac, service};
use crate::cluster::{ChildKind, Cluster};
use crate::failure::Failure;
use crate::openshift;
use crate::write::{ApplyError, apply, delete};

/// A step that did not succeed, and why.
#[derive(Debug, thiserror::Error)]
#[error("{} {cause}", step.words(cause))]
pub struct Unfinished {
    pub step: Step,
    pub cause: Cause,
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Rights,
    Network,
    Policies,
    Configuration,
    Deployment,
    Service,
}

impl Step {
    fn words(self, cause: &Cause) -> &'static str {
        match self {
            Self::Configuration if matches!(cause, Cause::Apply(_)) => {
                "Failed to build configuration: failed to upsert RunConfig ConfigMap:"
            }
            Self::Deployment if matches!(cause, Cause::Apply(_)) => "Failed to create Deployment:",
            Self::Rights => "Failed to ensure RBAC resources:",
            Self::Network => "Failed to ensure NetworkPolicy:",
            Self::Policies => "Failed to ensure authorization ConfigMap:",
            Self::Configuration => "Failed to build configuration:",
            Self::Deployment => "Failed to build Deployment:",
            Self::Service => "Failed to ensure Service:",
        }
    }
}

/// Why it did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The spec cannot be turned into a configuration.
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Pod(#[from] pod::PodError),
    /// A Secret or one of its keys does not exist.
    #[error("{0}")]
    Secret(BuildError),
    /// A Secret cannot be read: which, and why.
    #[error("failed to get {0}: {1}")]
    Read(String, Failure),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

impl Step {
    fn failed(self, cause: impl Into<Cause>) -> Unfinished {
        Unfinished { step: self, cause: cause.into() }
    }
}

/// Brings every object of a workload to its desired state.
pub async fn write<O: Proxied>(cluster: &Cluster, owner: &O, inputs: &Inputs<'_>) -> Result<(), Unfinished> {
    rights(cluster, owner, inputs).await.map_err(|cause| Step::Rights.failed(cause))?;
    // The backend, which the proxy starts, never runs without it.
    if let Some(network) = network_policy(inputs) {
        apply(cluster, owner, &network).await.map_err(|cause| Step::Network.failed(cause))?;
    }
    if let Some(policies) = run_config::inline_authz(inputs) {
        apply(cluster, owner, &policies).await.map_err(|cause| Step::Policies.failed(cause))?;
    }
    let checksum = configuration(cluster, owner, inputs).await.map_err(|cause| Step::Configuration.failed(cause))?;
    let mut deployment = pod::deployment(inputs, &checksum).map_err(|cause| Step::Deployment.failed(cause))?;
    hold_back(cluster, inputs, &mut deployment);
    apply(cluster, owner, &deployment).await.map_err(|cause| Step::Deployment.failed(cause))?;
    apply(cluster, owner, &service::service(inputs)).await.map_err(|cause| Step::Service.failed(cause))?;
    tidy(cluster, owner, inputs).await.map_err(|failure| Step::Rights.failed(ApplyError::from(failure)))
}

/// Takes away what an earlier spec needed and this one does not. Inline policies stay: pods of a rollout that is not over
/// mount them, and could not start again without.
async fn tidy<O: Proxied>(cluster: &Cluster, owner: &O, inputs: &Inputs<'_>) -> Result<(), Failure> {
    if network_policy(inputs).is_none() {
        delete::<O, NetworkPolicy>(cluster, owner, &mcp_server::network_policy(inputs.common.name)).await?;
    }
    let Some(account) = rbac::unneeded_account(inputs) else { return Ok(()) };
    delete::<O, ServiceAccount>(cluster, owner, &account).await?;
    if rbac::role(inputs).is_none() {
        delete::<O, RoleBinding>(cluster, owner, &account).await?;
        delete::<O, Role>(cluster, owner, &account).await?;
    }
    Ok(())
}

async fn rights<O: Proxied>(cluster: &Cluster, owner: &O, inputs: &Inputs<'_>) -> Result<(), ApplyError> {
    for mut account in rbac::service_accounts(inputs) {
        if inputs.settings.openshift
            && let Some(live) = live(cluster, inputs, &account)
        {
            openshift::keep_pull_secrets(&live, &mut account);
        }
        apply::<O, ServiceAccount>(cluster, owner, &account).await?;
    }
    if let Some(role) = rbac::role(inputs) {
        apply(cluster, owner, &role).await?;
    }
    if let Some(binding) = rbac::role_binding(inputs) {
        apply(cluster, owner, &binding).await?;
    }
    Ok(())
}

/// Writes the RunConfig and returns its checksum.
async fn configuration<O: Proxied>(cluster: &Cluster, owner: &O, inputs: &Inputs<'_>) -> Result<String, Cause> {
    for needed in run_config::needed_secrets(inputs) {
        let found = has_key(&cluster.client, inputs.common.namespace, &needed.name, &needed.key).await;
        match found.map_err(|error| Cause::Read(needed.what(inputs), error.into()))? {
            HasKey::Yes => {}
            HasKey::NoKey => return Err(Cause::Secret(needed.lacks_key(inputs))),
            HasKey::NoSecret => return Err(Cause::Secret(needed.is_missing(inputs))),
        }
    }
    let document = run_config::build(inputs)?;
    let config_map = run_config::config_map(inputs, &document);
    apply(cluster, owner, &config_map).await?;
    Ok(run_config::checksum(&config_map).to_owned())
}

/// A stdio server has one proxy, also when somebody scaled the Deployment.
fn hold_back(cluster: &Cluster, inputs: &Inputs<'_>, deployment: &mut Deployment) {
    let Target::Server(spec) = inputs.target else { return };
    let Some(live) = live(cluster, inputs, deployment).filter(|_| spec.transport == ServerTransport::Stdio) else {
        return;
    };
    let Some(desired) = deployment.spec.as_mut().filter(|desired| desired.replicas.is_none()) else { return };
    if live.spec.and_then(|live| live.replicas).is_some_and(|replicas| replicas > 1) {
        desired.replicas = Some(1);
        // Who scales it once more, to none, is not overruled by what was seen before.
        deployment.metadata.resource_version = live.metadata.resource_version;
    }
}

/// An object as it is on the server, if it is ours.
fn live<K: ChildKind + DeserializeOwned>(cluster: &Cluster, inputs: &Inputs<'_>, object: &K) -> Option<K> {
    let key = Key::new(inputs.common.namespace, object.name_any());
    cluster.child::<K>(&key).and_then(|found| K::deserialize(found.body()?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_cannot_be_read_is_no_write_that_failed() {
        let cause = Cause::Read("bearer token secret ns/s".to_owned(), Failure::Other("refused".to_owned()));
        let told = Step::Configuration.failed(cause).to_string();
        assert_eq!(told, "Failed to build configuration: failed to get bearer token secret ns/s: refused");
    }
}
