//! The embedded authorization server: clients sign in here, and it signs them in at identity providers upstream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An OAuth 2.1 authorization server that runs inside the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedAuthServer {
    /// The issuer of the tokens: the https address under which clients reach this server.
    pub issuer: String,
}
