//! Identity providers that speak plain OAuth 2, and the differences between them that have to be spelled out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::user_info::UserInfo;
use crate::kinds::references::SecretKeyRef;
use crate::sensitive::Sensitive;

/// An identity provider that speaks plain OAuth 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.clientId) && size(self.clientId) > 0) ? !has(self.dcrConfig) : has(self.dcrConfig)",
        "message": "exactly one of clientId or dcrConfig must be set",
    },
    {
        "rule": "!(has(self.dcrConfig) && has(self.clientSecretRef))",
        "message": "clientSecretRef must not be set when dcrConfig is set; the client_secret is obtained at runtime via Dynamic Client Registration",
    },
]))]
pub struct OAuth2Upstream {
    /// Further parameters of the request that sends users to the provider. Parameters that the protocol itself
    /// uses, such as state or scope, are refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub additional_authorization_params: BTreeMap<String, String>,
    /// Whether the provider may have a private address.
    #[serde(rename = "allowPrivateIPs", skip_serializing_if = "Option::is_none")]
    pub allow_private_ips: Option<bool>,
    /// The endpoint to which users are sent to sign in.
    #[schemars(regex(pattern = r"^https?://.*$"))]
    pub authorization_endpoint: String,
    /// The identifier under which this server is registered at the provider. Not together with dcrConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The key of a Secret that holds the client secret. Leave it out for a public client. Not together with
    /// dcrConfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_ref: Option<SecretKeyRef>,
    /// How this server registers itself at the provider when it starts. Set it when there is no clientId.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dcr_config: Option<ClientRegistration>,
    /// Where the token response says who the user is. It wins over userInfo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_from_token: Option<IdentityFromToken>,
    /// Whether the provider may have plain http addresses. For development only: tokens travel in clear text.
    #[serde(rename = "insecureAllowHTTP", skip_serializing_if = "Option::is_none")]
    pub insecure_allow_http: Option<bool>,
    /// The address to which the provider sends users back. Defaults to `/oauth/callback` below the address of the
    /// protected resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The scopes to ask the provider for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
    /// The endpoint at which codes and refresh tokens are redeemed.
    #[schemars(regex(pattern = r"^https?://.*$"))]
    pub token_endpoint: String,
    /// Where the members of a token response are found, for providers that do not follow the standard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_response_mapping: Option<TokenResponseMapping>,
    /// The endpoint that says who the user is. Without it and without identityFromToken every sign-in is a user
    /// of its own, with neither name nor email address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_info: Option<UserInfo>,
}

/// How this server registers itself at a provider (RFC 7591). The registration is kept in the storage and renewed
/// when its secret expires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.discoveryUrl) != has(self.registrationEndpoint)",
        "message": "exactly one of discoveryUrl or registrationEndpoint must be set",
    },
]))]
pub struct ClientRegistration {
    /// The provider's discovery document, which names the registration endpoint. Not together with
    /// registrationEndpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^https://[^\s?#]+[^/\s?#]$"))]
    pub discovery_url: Option<String>,
    /// The key of a Secret that holds a token without which the provider registers nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_access_token_ref: Option<SecretKeyRef>,
    /// The endpoint at which to register. Not together with discoveryUrl.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^https://[^\s?#]+[^/\s?#]$"))]
    pub registration_endpoint: Option<String>,
    /// The identifier of this software that the provider is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub software_id: Option<String>,
    /// A signed statement about this software that the provider is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub software_statement: Option<Sensitive>,
}

/// Where a token response says who the user is. Paths go through nested objects with dots; `@upstreamjwt` as a
/// step reads what is inside a JWT, whose signature is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityFromToken {
    /// The path of the user's email address.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub email_path: Option<String>,
    /// The path of the user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name_path: Option<String>,
    /// The path of what identifies the user, a text or a number. Signing in fails when nothing is there.
    #[schemars(length(min = 1, max = 256))]
    pub subject_path: String,
}

/// Where the members of a token response are found. Paths go through nested objects with dots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenResponseMapping {
    /// The path of the access token.
    #[schemars(length(min = 1))]
    pub access_token_path: String,
    /// The path of the lifetime in seconds. Defaults to expires_in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_path: Option<String>,
    /// The path of the refresh token. Defaults to refresh_token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token_path: Option<String>,
    /// The path of the granted scopes. Defaults to scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope_path: Option<String>,
}
