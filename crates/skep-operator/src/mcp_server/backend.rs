//! The StatefulSet of the backend, which the proxy runner writes: adopted when it is there, asked for when it is not.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_api::names::{field_managers, mcp_server};
use skep_control::{Key, Next};

use super::restart;
use crate::cluster::{Child, ChildKind as _, Cluster, Written};
use crate::failure::Failure;
use crate::write::owner_reference;

/// How soon a missing StatefulSet is looked for again.
const RECHECK: Duration = Duration::from_secs(10);
/// How often the proxy is restarted at most, so that it writes the StatefulSet anew.
const BOUNCE_PERIOD: SignedDuration = SignedDuration::from_mins(2);

/// Looks after the StatefulSet. `deployment` is the proxy's, as it is on the server.
pub async fn heal(cluster: &Cluster, server: &MCPServer) -> Result<Next, Failure> {
    let (namespace, name) = (server.namespace().unwrap_or_default(), server.name_any());
    let key = Key::new(namespace.as_str(), mcp_server::stateful_set(&name));
    if let Some(found) = cluster.child::<StatefulSet>(&key) {
        return adopt(cluster, server, &found).await.map(|()| Next::Rest);
    }
    let key = Key::new(namespace.as_str(), mcp_server::deployment(&name));
    let deployment = cluster.child::<Deployment>(&key);
    if deployment.as_ref().and_then(|found| found.body()).is_some_and(lacks_backend) {
        restart::stamp(cluster, &namespace, &name).await?;
    }
    Ok(Next::After(RECHECK))
}

/// Whether a proxy that runs should have written its StatefulSet, and was not restarted for that a moment ago.
fn lacks_backend(deployment: &Value) -> bool {
    let is_up = deployment["status"]["availableReplicas"].as_i64().unwrap_or_default() > 0;
    let last = restart::last_stamp(deployment);
    is_up && last.is_none_or(|at| Timestamp::now().duration_since(at) >= BOUNCE_PERIOD)
}

async fn adopt(cluster: &Cluster, server: &MCPServer, found: &Child<StatefulSet>) -> Result<(), Failure> {
    match found.controller() {
        Some(owner) if Some(&owner.uid) == server.uid().as_ref() => return Ok(()),
        Some(owner) => {
            let (name, kind, other) = (found.name_any(), &owner.kind, &owner.name);
            return Err(Failure::Other(format!(
                "StatefulSet {name} belongs to {kind} {other}; rename this MCPServer, or delete that StatefulSet"
            )));
        }
        None if found.meta().deletion_timestamp.is_some() => return Ok(()),
        None => {}
    }
    let mut owners = found.meta().owner_references.clone().unwrap_or_default();
    owners.push(owner_reference(server));
    let patch = json!({"metadata": {"resourceVersion": found.resource_version(), "ownerReferences": owners}});
    let namespace = server.namespace().unwrap_or_default();
    let api: Api<Written<StatefulSet>> = Api::namespaced(cluster.client.clone(), &namespace);
    let params = PatchParams { field_manager: Some(field_managers::OPERATOR.to_owned()), ..PatchParams::default() };
    let written = api.patch(&found.name_any(), &params, &Patch::Merge(&patch)).await?;
    StatefulSet::cache(cluster).until_seen(&written).await;
    Ok(())
}
