//! The parts of a pod that its node serves: its logs, and conversations with its containers and ports.
//!
//! ```text
//! request ─> may they create? ─> options ─> pod ─> container ─> node ─> location ─> log:    the answer of the node
//!                                                                                └> others: a change of the protocol
//! ```

mod location;
mod log;
mod log_options;
mod node_client;
mod options;
mod upgrade;

use std::sync::Arc;

use axum::body::Body;
use http::request::Parts;
use http::{Method, Response};

use super::State;
use super::exchange::Exchange;
use super::path::ResourcePath;
use crate::auth::{Action, Decision, ResourceAction};
use crate::status::ApiError;

pub use node_client::{NodeClient, NodeClientError};

/// A part that a node serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Log,
    Exec,
    Attach,
    PortForward,
}

impl Part {
    /// The part that a path names, if a node serves it.
    pub(super) fn of(path: &ResourcePath) -> Option<Self> {
        let is_pod = path.group.is_empty() && path.resource == "pods" && path.name.is_some();
        let part = path.subresource.as_deref().filter(|_| is_pod && path.rest.is_empty() && !path.watch)?;
        match part {
            "log" => Some(Self::Log),
            "exec" => Some(Self::Exec),
            "attach" => Some(Self::Attach),
            "portforward" => Some(Self::PortForward),
            _ => None,
        }
    }
}

/// Answers a request that its resource knows. `parts` is the request itself, with the connection that it came on.
pub(super) async fn answer(
    state: &Arc<State>,
    exchange: &Exchange,
    part: Part,
    parts: Parts,
) -> Result<Response<Body>, ApiError> {
    let query = parts.uri.query().unwrap_or_default().to_owned();
    if part == Part::Log {
        return log::answer(state, exchange, &query).await;
    }
    check_create(state, exchange)?;
    let location = location::of_conversation(state, exchange, part, &query)?;
    upgrade::pass(state, &location, parts).await
}

/// A WebSocket begins with a GET. What follows changes more than a reader may.
fn check_create(state: &State, exchange: &Exchange) -> Result<(), ApiError> {
    if exchange.method != Method::GET {
        return Ok(());
    }
    let ResourcePath { group, namespace, resource, name, subresource, .. } = exchange.path.clone();
    let action = Action::Resource(ResourceAction {
        verb: "create".to_owned(),
        group,
        resource,
        subresource: subresource.unwrap_or_default(),
        namespace: namespace.unwrap_or_default(),
        name: name.unwrap_or_default(),
        field_selector: Vec::new(),
    });
    match state.access.with_authorizer(|authorizer| authorizer.decide(&exchange.user, &action)) {
        Decision::Allowed(_) => Ok(()),
        Decision::NoOpinion(reason) => Err(ApiError::forbidden(&exchange.resource.name(), exchange.name(), &reason)),
    }
}
