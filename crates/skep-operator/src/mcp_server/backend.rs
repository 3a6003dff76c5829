//! The StatefulSet of the backend, which the proxy runner writes: adopted when it is there, asked for when it is not.
//!
//! The runner gives it no owner. Until somebody has adopted it, it is known by its name and labels.

use std::str::FromStr as _;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_api::names::{field_managers, labels, mcp_server};
use skep_control::{Key, Next};

use super::restart;
use crate::cluster::{Child, ChildKind, Cluster, Written};
use crate::failure::Failure;
use crate::proxy::build::Stop;
use crate::write::{delete_for_good, owner_reference};

/// How soon a missing StatefulSet is looked for again.
const RECHECK: Duration = Duration::from_secs(10);
/// How long a proxy is up before a StatefulSet is missed: it answers a moment before it has written that.
const FIRST_BOOT: SignedDuration = SignedDuration::from_secs(10);
/// How often the proxy is restarted at most, so that it writes the StatefulSet anew.
const BOUNCE_PERIOD: SignedDuration = SignedDuration::from_mins(2);

/// Refuses a name under which somebody else keeps a StatefulSet.
pub fn check(cluster: &Cluster, server: &MCPServer) -> Result<(), Stop> {
    let Some(found) = cluster.child::<StatefulSet>(&key(server)) else { return Ok(()) };
    match found.controller() {
        Some(owner) if Some(&owner.uid) != server.uid().as_ref() => {
            let (name, kind, other) = (found.name_any(), &owner.kind, &owner.name);
            Err(Stop::told_now_and_then(format!(
                "StatefulSet {name} exists and belongs to {kind} {other}; rename this MCPServer, or delete that \
                 StatefulSet if nobody needs it"
            )))
        }
        _ => Ok(()),
    }
}

/// Takes away the backend of a server, adopted or not.
pub async fn remove(cluster: &Cluster, server: &MCPServer) -> Result<(), Failure> {
    let name = server.name_any();
    let set = mcp_server::stateful_set(&name);
    delete_for_good(cluster, server, &set, |found: &Child<StatefulSet>| is_of(found, server)).await?;
    for service in [mcp_server::backend_headless_service(&name), mcp_server::backend_service(&name)] {
        delete_for_good(cluster, server, &service, |found: &Child<Service>| is_of(found, server)).await?;
    }
    Ok(())
}

/// Whether an object is part of the backend of a server: its own, or one without an owner that the runner has labelled.
/// The Services belong to the StatefulSet.
fn is_of<K: ChildKind>(found: &Child<K>, server: &MCPServer) -> bool {
    let name = server.name_any();
    let is_labelled = || {
        let all = found.meta().labels.as_ref();
        let carries = |label: &str, value: &str| all.and_then(|all| all.get(label)).is_some_and(|found| found == value);
        carries(labels::TOOLHIVE, labels::TRUE)
            && (carries(labels::APP, &name) || carries(labels::TOOLHIVE_NAME, &name))
    };
    match found.controller() {
        Some(owner) if Some(&owner.uid) == server.uid().as_ref() => true,
        Some(owner) => {
            owner.kind == StatefulSet::kind(&()) && owner.name == mcp_server::stateful_set(&name) && is_labelled()
        }
        None => is_labelled(),
    }
}

fn key(server: &MCPServer) -> Key {
    Key::new(server.namespace().unwrap_or_default(), mcp_server::stateful_set(&server.name_any()))
}

/// Looks after the StatefulSet of a server that [`check`] has let pass.
pub async fn heal(cluster: &Cluster, server: &MCPServer) -> Result<Next, Failure> {
    if let Some(found) = cluster.child::<StatefulSet>(&key(server)) {
        return adopt(cluster, server, &found).await.map(|()| Next::Rest);
    }
    let key = Key::new(server.namespace().unwrap_or_default(), mcp_server::deployment(&server.name_any()));
    let deployment = cluster.child::<Deployment>(&key);
    if deployment.as_ref().and_then(|found| found.body()).is_some_and(lacks_backend) {
        restart::stamp(cluster, server).await?;
    }
    Ok(Next::After(RECHECK))
}

/// Whether a proxy that has been up for a while should have written its StatefulSet, and was not restarted for that a
/// moment ago.
fn lacks_backend(deployment: &Value) -> bool {
    let has_passed = |since: Timestamp, time| Timestamp::now().duration_since(since) >= time;
    up_since(deployment).is_some_and(|at| has_passed(at, FIRST_BOOT))
        && restart::last_stamp(deployment).is_none_or(|at| has_passed(at, BOUNCE_PERIOD))
}

/// Since when a Deployment has been available.
fn up_since(deployment: &Value) -> Option<Timestamp> {
    let status = &deployment["status"];
    status["availableReplicas"].as_i64().filter(|count| *count > 0)?;
    let mut conditions = status["conditions"].as_array()?.iter();
    let available = conditions.find(|found| found["type"] == "Available" && found["status"] == "True")?;
    Timestamp::from_str(available["lastTransitionTime"].as_str()?).ok()
}

async fn adopt(cluster: &Cluster, server: &MCPServer, found: &Child<StatefulSet>) -> Result<(), Failure> {
    if found.controller().is_some() || found.meta().deletion_timestamp.is_some() {
        return Ok(());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_up_when_it_is_available() {
        let at = "2026-01-02T03:04:05Z";
        let deployment = |count: i64, status: &str| {
            let condition = json!({"type": "Available", "status": status, "lastTransitionTime": at});
            json!({"status": {"availableReplicas": count, "conditions": [{"type": "Progressing"}, condition]}})
        };
        assert_eq!(up_since(&deployment(1, "True")), Timestamp::from_str(at).ok());
        for down in [deployment(0, "True"), deployment(1, "False"), json!({})] {
            assert_eq!(up_since(&down), None);
        }
    }
}
