//! How MCP messages travel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Transports that work across a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RemoteTransport {
    /// Server-sent events with a second endpoint for messages, as in the first revision of MCP.
    Sse,
    /// One endpoint that answers with JSON or a stream of events.
    #[default]
    StreamableHttp,
}

/// Transports that a server in the cluster can speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerTransport {
    /// Lines on standard input and output. The proxy turns them into HTTP.
    #[default]
    Stdio,
    /// One endpoint that answers with JSON or a stream of events.
    StreamableHttp,
    /// Server-sent events with a second endpoint for messages, as in the first revision of MCP.
    Sse,
}

/// Transports in which a proxy can offer a stdio server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyMode {
    /// Server-sent events with a second endpoint for messages, for clients that know nothing newer.
    Sse,
    /// One endpoint that answers with JSON or a stream of events.
    #[default]
    StreamableHttp,
}

/// The port of an endpoint when none is given.
pub const DEFAULT_PORT: i32 = 8080;

pub(super) fn default_port() -> i32 {
    DEFAULT_PORT
}
