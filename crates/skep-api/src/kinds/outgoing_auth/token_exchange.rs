//! Exchanging the token of a client for one that the MCP server accepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::references::SecretKeyRef;

/// Tokens that are obtained at a token endpoint in exchange for those of clients (RFC 8693).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenExchange {
    /// The audience to ask for, which is the MCP server.
    pub audience: String,
    /// The client as which the proxy authenticates at the token endpoint. It is used only with a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The key of a Secret that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The header in which the new token is sent. Defaults to Authorization, where it replaces the client's token.
    /// The client's token is never passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_token_header_name: Option<String>,
    /// The scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
    /// The provider of the embedded authorization server whose token is exchanged instead of the client's. Only in a
    /// VirtualMCPServer, where it defaults to the first provider, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_provider_name: Option<String>,
    /// The type of the token that is given in exchange: access_token, id_token or jwt, or one of these as a full URN.
    /// Defaults to access_token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(access_token|id_token|jwt|urn:ietf:params:oauth:token-type:(access_token|id_token|jwt))?$"
    ))]
    pub subject_token_type: Option<String>,
    /// The address of the token endpoint.
    pub token_url: String,
}
