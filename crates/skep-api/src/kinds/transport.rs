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

/// The port of an endpoint when none is given.
pub const DEFAULT_PORT: i32 = 8080;

pub(super) fn default_port() -> i32 {
    DEFAULT_PORT
}
