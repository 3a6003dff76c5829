//! Restarts that a person asks for by an annotation, and the stamp that rolls the proxy's pods.

use std::str::FromStr as _;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_api::names::{annotations, field_managers, labels, mcp_server};
use skep_control::Key;

use crate::cluster::{ChildKind as _, Cluster, Written};
use crate::failure::Failure;
use crate::write::{Writer, is_controlled_by};

/// A restart that was asked for and has not been carried out, with the text that asked for it.
fn pending(server: &MCPServer) -> Option<&str> {
    let found = server.annotations();
    let asked = found.get(annotations::RESTARTED_AT).filter(|asked| !asked.is_empty())?;
    let Ok(at) = Timestamp::from_str(asked) else {
        tracing::warn!(server = server.name_any(), asked, "restart ignored: the time is not RFC 3339");
        return None;
    };
    let last = found.get(annotations::LAST_PROCESSED_RESTART).and_then(|last| Timestamp::from_str(last).ok());
    (last.is_none_or(|last| at > last)).then_some(asked)
}

/// Carries out a restart if one is due, and says whether it did.
pub async fn restart(cluster: &Cluster, server: &MCPServer, writer: &Writer<MCPServer>) -> Result<bool, Failure> {
    let Some(asked) = pending(server) else { return Ok(false) };
    let namespace = server.namespace().unwrap_or_default();
    match server.annotations().get(annotations::RESTART_STRATEGY).map(String::as_str) {
        Some(annotations::RESTART_IMMEDIATE) => delete_pods(cluster, &namespace, &server.name_any()).await,
        _ => stamp(cluster, server).await,
    }
    .map_err(|failure| failure.because("failed to perform restart"))?;
    let done = json!({"annotations": {annotations::LAST_PROCESSED_RESTART: asked}});
    writer
        .metadata(server, done)
        .await
        .map_err(|failure| failure.because("failed to update MCPServer with last processed restart annotation"))?;
    Ok(true)
}

/// Stamps the proxy's pod template, so that its pods are replaced one after the other. A Deployment that does not exist
/// needs no restart, and one of somebody else is none of ours.
pub async fn stamp(cluster: &Cluster, server: &MCPServer) -> Result<(), Failure> {
    let namespace = server.namespace().unwrap_or_default();
    let key = Key::new(namespace.as_str(), mcp_server::deployment(&server.name_any()));
    let Some(live) = cluster.child::<Deployment>(&key).filter(|live| is_controlled_by(live.as_ref(), server)) else {
        return Ok(());
    };
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
    let patch = json!({
        "metadata": {"resourceVersion": live.resource_version()},
        "spec": {"template": {"metadata": {"annotations": {annotations::RESTARTED_AT: now.to_string()}}}},
    });
    let api: Api<Written<Deployment>> = Api::namespaced(cluster.client.clone(), &namespace);
    // Another manager than that of the children: what it writes is no part of what is desired, and stays.
    let params = PatchParams { field_manager: Some(field_managers::RESTART.to_owned()), ..PatchParams::default() };
    match api.patch(&key.name, &params, &Patch::Merge(&patch)).await {
        Ok(written) => Deployment::cache(cluster).until_seen(&written).await,
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// When the proxy's pods were last replaced on our account.
pub fn last_stamp(deployment: &Value) -> Option<Timestamp> {
    let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
    Timestamp::from_str(annotations[annotations::RESTARTED_AT].as_str()?).ok()
}

async fn delete_pods(cluster: &Cluster, namespace: &str, name: &str) -> Result<(), Failure> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    // Asked for: a pod that has not been heard of yet would never be replaced.
    let own = ListParams::default().labels(&labels::selector_text(&labels::mcp_server(name)));
    let pods = api.list_metadata(&own).await?;
    for pod in pods {
        let preconditions = Preconditions { uid: pod.uid(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match api.delete(&pod.name_any(), &params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            answer => {
                answer?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_asked_for_once() {
        let due = |asked: &str, last: &str| {
            let mut server = MCPServer::default();
            let found = server.annotations_mut();
            found.insert(annotations::RESTARTED_AT.to_owned(), asked.to_owned());
            found.insert(annotations::LAST_PROCESSED_RESTART.to_owned(), last.to_owned());
            pending(&server).is_some()
        };
        assert!(due("2026-01-01T00:00:00Z", ""));
        assert!(due("2026-01-01T00:00:00Z", "rubbish"));
        assert!(due("2026-01-01T02:00:01+02:00", "2026-01-01T00:00:00Z"));
        assert!(!due("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"));
        assert!(!due("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"));
        assert!(!due("tomorrow", ""));
        assert!(!due("", ""));
    }
}
