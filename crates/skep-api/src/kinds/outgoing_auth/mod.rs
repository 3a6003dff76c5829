//! Ways in which requests get the credentials that they carry to an MCP server, one type each.

pub mod aws_sts;
pub mod on_behalf_of;
pub mod token_exchange;
pub mod xaa;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::SecretKeyRef;

/// A fixed bearer token that every request to a remote server carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BearerToken {
    /// The key of a Secret that holds the token.
    pub token_secret_ref: SecretKeyRef,
}

/// A header with a fixed value that every request carries. It replaces what clients send under that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeaderInjection {
    /// The name of the header.
    #[schemars(length(min = 1))]
    pub header_name: String,
    /// The key of a Secret that holds the value.
    pub value_secret_ref: SecretKeyRef,
}

/// The user's access token from a provider of the embedded authorization server, as the bearer token of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamInject {
    /// The name of the upstream provider.
    #[schemars(length(min = 1))]
    pub provider_name: String,
}
