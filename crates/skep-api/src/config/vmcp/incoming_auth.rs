//! How clients sign in to a vMCP process and what they may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::raw::RawObject;

/// Values of [`IncomingAuthSettings::type_`]. The schema admits any text; the runtime admits these.
pub mod incoming_auth_type {
    /// Anybody may call.
    pub const ANONYMOUS: &str = "anonymous";
    /// The user of the local machine.
    pub const LOCAL: &str = "local";
    /// Tokens of an OpenID Connect issuer.
    pub const OIDC: &str = "oidc";
}

/// Values of [`AuthzSettings::type_`]. The schema admits any text; the runtime admits these.
pub mod authz_type {
    /// Cedar policies decide.
    pub const CEDAR: &str = "cedar";
    /// Everything is permitted.
    pub const NONE: &str = "none";
}

/// How clients sign in and what they may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncomingAuthSettings {
    /// What clients may do. Without it they may do everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authz: Option<AuthzSettings>,
    /// The issuer of tokens and how they are checked. Needed when type is oidc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcSettings>,
    /// How clients sign in: oidc, local or anonymous.
    #[serde(rename = "type")]
    pub type_: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// The issuer of tokens and how they are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcSettings {
    /// The audience that a token must carry.
    pub audience: String,
    /// The file of CA certificates that the issuer's certificate is checked with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_bundle_path: Option<String>,
    /// The client as which the server asks about tokens at introspectionUrl. It may be empty.
    // The schema requires the member, the runtime does not: a file without it is read as if it were empty.
    #[serde(default)]
    #[schemars(extend("default" = null, "x-skep-required" = true))]
    pub client_id: String,
    /// The environment variable that holds the secret of that client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// Whether the issuer may be spoken to without TLS. For trials only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_allow_http: Option<bool>,
    /// The endpoint at which tokens that are not JWTs are checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_url: Option<String>,
    /// The issuer of the tokens.
    #[schemars(regex(pattern = r"^https?://"))]
    pub issuer: String,
    /// Whether the issuer and its keys may be at a private address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_allow_private_ip: Option<bool>,
    /// Where the keys of the issuer are found. Without it the issuer's discovery document says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// Whether the published protected resource may be at a private address. It also admits private addresses of
    /// the issuer, as jwksAllowPrivateIp does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_resource_allow_private_ip: Option<bool>,
    /// The address under which clients reach the server, published in the OAuth protected-resource document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The OAuth scopes that clients are told to ask for.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// What clients may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthzSettings {
    /// Cedar entities as a JSON array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entities_json: Option<String>,
    /// The claim of a token that lists the groups of its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_claim_name: Option<String>,
    /// The Cedar entity type that groups have in the policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_entity_type: Option<String>,
    /// The Cedar policies. What none of them permits is forbidden. Type cedar needs at least one.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// The upstream identity provider whose claims the policies see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_upstream_provider: Option<String>,
    /// The claim of a token that lists the roles of its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_claim_name: Option<String>,
    /// What decides: cedar or none.
    #[serde(rename = "type")]
    pub type_: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
