//! Cross-application access: an identity provider vouches for its user at another application.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kinds::references::SecretKeyRef;

/// Access to another application in two steps: the identity provider gives an assertion for the user's ID token
/// (ID-JAG), and the application's own authorization server gives an access token for that assertion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrossApplicationAccess {
    /// The client as which the proxy authenticates at the identity provider. It needs a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idp_client_id: Option<String>,
    /// The key of a Secret that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idp_client_secret_ref: Option<SecretKeyRef>,
    /// The token endpoint of the identity provider.
    #[schemars(regex(pattern = r"^https://.*$"))]
    pub idp_token_url: String,
    /// Whether targetTokenUrl may be a plain http address on any host. For development only: tokens travel in clear
    /// text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_target_token_url: Option<bool>,
    /// The scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
    /// The provider of the embedded authorization server whose ID token is used. It can be left out when there is
    /// only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_provider_name: Option<String>,
    /// The type of the user's token. Only ID tokens are possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_token_type: Option<XaaSubjectTokenType>,
    /// The audience of the assertion, which is the application's authorization server.
    pub target_audience: String,
    /// The client as which the proxy authenticates at the application's authorization server. It needs a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_client_id: Option<String>,
    /// The key of a Secret that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_client_secret_ref: Option<SecretKeyRef>,
    /// The resource that access is asked for, which is the MCP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_resource: Option<String>,
    /// The token endpoint of the application's authorization server. It must be https, except on the loopback
    /// interface or with insecureTargetTokenUrl.
    pub target_token_url: String,
}

/// Types of user tokens that an assertion is given for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum XaaSubjectTokenType {
    #[default]
    #[serde(rename = "urn:ietf:params:oauth:token-type:id_token")]
    IdToken,
}
