//! Identity providers where the users of the embedded authorization server sign in.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::upstream_oauth2::OAuth2Upstream;
use super::user_info::UserInfo;
use crate::kinds::references::SecretKeyRef;

/// An identity provider where users sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'oidc' ? (has(self.oidcConfig) && !has(self.oauth2Config)) : self.type == 'oauth2' ? (has(self.oauth2Config) && !has(self.oidcConfig)) : false",
        "message": "type must be 'oidc' or 'oauth2'; oidcConfig must be set when type is 'oidc' and oauth2Config must be set when type is 'oauth2' (and the other must not be set)",
    },
]))]
pub struct UpstreamProvider {
    /// The name by which other parts of the configuration speak of this provider.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub name: String,
    /// The provider's endpoints. Set it when type is oauth2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth2_config: Option<OAuth2Upstream>,
    /// The provider's issuer. Set it when type is oidc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc_config: Option<OIDCUpstream>,
    /// What the provider speaks.
    #[serde(rename = "type")]
    pub type_: UpstreamType,
}

/// What an identity provider speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UpstreamType {
    /// OpenID Connect: endpoints are discovered, and users are known by their ID token.
    #[default]
    Oidc,
    /// Plain OAuth 2: endpoints are given, and who the user is must be found out separately.
    Oauth2,
}

/// An identity provider that speaks OpenID Connect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OIDCUpstream {
    /// Further parameters of the request that sends users to the provider. Parameters that the protocol itself
    /// uses, such as state or scope, are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub additional_authorization_params: BTreeMap<String, String>,
    /// The identifier under which this server is registered at the provider.
    pub client_id: String,
    /// The key of a Secret that holds the client secret. Leave it out for a public client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_ref: Option<SecretKeyRef>,
    /// The provider's issuer. Its endpoints are discovered from there.
    #[schemars(regex(pattern = r"^https://.*$"))]
    pub issuer_url: String,
    /// The address to which the provider sends users back. Defaults to `/oauth/callback` below the address of the
    /// protected resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The scopes to ask the provider for; openid must be among them. Defaults to openid and offline_access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
    /// The claim of the ID token that identifies the user. Defaults to sub. Changing it makes every user a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^([a-zA-Z_][a-zA-Z0-9_]*)?$"))]
    pub subject_claim: Option<String>,
    /// Accepted for compatibility and without effect: users are known by their ID token, and a warning in the log
    /// says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_info_override: Option<UserInfo>,
}
