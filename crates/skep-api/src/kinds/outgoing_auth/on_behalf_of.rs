//! Acting on behalf of a user with a token that names both the user and the proxy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::DurationText;
use crate::kinds::references::SecretKeyRef;

/// Tokens with which the proxy acts on behalf of the user, got in exchange for the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnBehalfOf {
    /// The audience to ask for, which is the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The address of the authority that issues the tokens. It has no query, no fragment and no slash at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^https://[^\s?#@]+[^/\s?#@]$"))]
    pub authority: Option<String>,
    /// How long before its expiry a token is no longer used, for example `1m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub cache_skew: Option<DurationText>,
    /// The client as which the proxy authenticates at the authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The key of a Secret that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 20),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub scopes: Vec<String>,
    /// The provider of the embedded authorization server whose token is exchanged instead of the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub subject_token_provider_name: Option<String>,
    /// The tenant at the authority, as a GUID or a domain. Names that stand for several tenants, such as common, are
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 253),
        regex(
            pattern = r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,})$"
        )
    )]
    pub tenant_id: Option<String>,
}
