//! Clients that do not register themselves: those known from the start, and those that describe themselves in a
//! document on the web.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::DurationText;
use crate::kinds::references::SecretKeyRef;

/// A client with a secret that is known from the start. The only thing it may do is to exchange the token of a user
/// for one with which it acts on the user's behalf (RFC 8693).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.clientSecretRef) && size(self.clientSecretRef.name) > 0 && size(self.clientSecretRef.key) > 0",
        "message": "clientSecretRef.name and clientSecretRef.key are required and must be non-empty",
    },
]))]
pub struct DelegateClient {
    /// The audiences that the client may ask for. They must be among those that this server issues tokens for.
    #[schemars(
        length(min = 1, max = 10),
        inner(length(min = 1, max = 2048)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub audiences: Vec<String>,
    /// The identifier with which the client authenticates. Every client has its own.
    #[schemars(length(min = 1, max = 256))]
    pub client_id: String,
    /// The key of a Secret that holds the client's secret, at least 32 characters long.
    pub client_secret_ref: SecretKeyRef,
    /// The scopes that the client may ask for. They must be among those that this server supports.
    #[schemars(
        length(min = 1, max = 10),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub scopes: Vec<String>,
}

/// Clients whose identifier is the address of a document that describes them (client ID metadata documents).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientMetadataDocuments {
    /// How long a document is kept before it is fetched again. Defaults to `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_fallback_ttl: Option<DurationText>,
    /// How many documents are kept; the one that was not used for longest makes room. Defaults to 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("format" = null))]
    pub cache_max_size: Option<i64>,
    /// Whether such clients are accepted.
    #[serde(default)]
    #[schemars(extend("x-skep-required" = true))]
    pub enabled: bool,
}
