//! Whether the server behind a proxy answers. `Ready` of an MCPServer says that the proxy runs, and no more than that.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use skep_api::conditions::types::VERIFIED;
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPServer;
use skep_api::names::mcp_server;

use super::pods::{PENDING, life};
use super::rows::tell_life;
use super::{Endpoint, Observed};

/// The endpoint of an object, unless there is a server of its own behind it that does not answer.
pub(super) fn tell_unanswered(endpoint: Endpoint, object: &DynamicObject, observed: &Observed) -> Endpoint {
    if endpoint.kind != MCPServer::DEFINITION.kind {
        return endpoint;
    }
    let (phase, message) = server_life(object, observed);
    let endpoint = tell_life(endpoint, phase, message);
    match handshake(object) {
        Ok(()) => endpoint,
        Err(message) => tell_life(endpoint, PENDING, Some(message)),
    }
}

/// How the pods of the server itself do.
fn server_life(object: &DynamicObject, observed: &Observed) -> (&'static str, Option<String>) {
    let name = mcp_server::stateful_set(&object.name_any());
    let set = observed.stateful_sets.iter().find(|set| set.name_any() == name && set.namespace() == object.namespace());
    let replicas = set.and_then(|set| set.spec.as_ref()?.replicas);
    let belongs = |pod: &&Pod| {
        let mut owners = pod.owner_references().iter();
        pod.namespace() == object.namespace()
            && owners.any(|owner| owner.kind == "StatefulSet" && owner.name == name && owner.controller == Some(true))
    };
    let pods: Vec<&Pod> = observed.pods.iter().map(AsRef::as_ref).filter(belongs).collect();
    life(&pods, replicas)
}

/// Why no handshake has succeeded with the server as it is now. One that only users may talk to counts as one that
/// answers: its proxy asks who is there, and nobody here could say.
fn handshake(object: &DynamicObject) -> Result<(), String> {
    let conditions = object.data["status"]["conditions"].as_array();
    let told = conditions.into_iter().flatten().find(|condition| {
        condition["type"] == VERIFIED && condition["observedGeneration"].as_i64() == object.metadata.generation
    });
    match told {
        Some(told) if told["status"] == "False" => Err(told["message"].as_str().unwrap_or_default().to_owned()),
        Some(_) => Ok(()),
        None => Err("no MCP handshake with the server has succeeded yet".to_owned()),
    }
}
