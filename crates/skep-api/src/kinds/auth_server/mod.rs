//! The embedded authorization server: clients sign in here, and it signs their users in at identity providers
//! upstream. MCPExternalAuthConfig and VirtualMCPServer describe it in the same words.

pub mod clients;
pub mod storage;
pub mod trusted_issuer;
pub mod upstream;
pub mod upstream_oauth2;
pub mod user_info;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::clients::{ClientMetadataDocuments, DelegateClient};
use self::storage::AuthServerStorage;
use self::trusted_issuer::TrustedIssuer;
use self::upstream::UpstreamProvider;
use super::references::SecretKeyRef;
use crate::duration::DurationText;

/// An OAuth authorization server that runs inside the proxy. It issues its own tokens to clients and keeps the
/// tokens of the identity providers, where users really sign in, to itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!(has(self.allowConfidentialClientRegistration) && self.allowConfidentialClientRegistration && has(self.insecureAllowHTTP) && self.insecureAllowHTTP)",
        "message": "allowConfidentialClientRegistration cannot be combined with insecureAllowHTTP; client secrets would be issued in cleartext over an unauthenticated endpoint",
    },
    {
        "rule": "!has(self.delegateClients) || size(self.delegateClients) == 0 || !self.issuer.startsWith('http://')",
        "message": "delegateClients require an https:// issuer; delegate client secrets must not be sent over plaintext HTTP",
    },
    {
        "rule": "(!has(self.forceConfidentialRedirectUris) || size(self.forceConfidentialRedirectUris) == 0) || (has(self.allowConfidentialClientRegistration) && self.allowConfidentialClientRegistration)",
        "message": "forceConfidentialRedirectUris requires allowConfidentialClientRegistration to be true",
    },
]))]
pub struct EmbeddedAuthServer {
    /// Whether clients that register themselves may ask for a secret. Without it all of them are public clients,
    /// which prove themselves with PKCE alone. Not together with insecureAllowHTTP.
    #[serde(default)]
    pub allow_confidential_client_registration: bool,
    /// What the published address of the authorize endpoint begins with, when browsers reach this server under
    /// another address than programs do. Defaults to the issuer; all other endpoints always stay there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^https?://[^\s?#]+[^/\s?#]$"))]
    pub authorization_endpoint_base_url: Option<String>,
    /// Scopes that every registered client gets in addition to those it asks for. They must be among the scopes
    /// that this server supports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(min = 1), regex(pattern = r"^[\x21\x23-\x5B\x5D-\x7E]+$")),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub baseline_client_scopes: Vec<String>,
    /// Whether a client may name itself by the address of a document that describes it, instead of registering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cimd: Option<ClientMetadataDocuments>,
    /// Clients known from the start that may exchange the token of a user for one to act on the user's behalf.
    /// They need an https issuer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub delegate_clients: Vec<DelegateClient>,
    /// Whether requests go to the MCP server without any credential, instead of with the user's token from the
    /// upstream provider. Set it for servers that trust the proxy, or when clients come with tokens that have no
    /// user session behind them.
    #[serde(default)]
    pub disable_upstream_token_injection: bool,
    /// Redirect addresses whose clients get a secret even if they register as public ones. A registration counts
    /// when one of its addresses is exactly one of these. Needs allowConfidentialClientRegistration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(regex(pattern = r"^https://[^\s?#]+$")),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub force_confidential_redirect_uris: Vec<String>,
    /// Secrets of at least 32 bytes with which authorization codes and refresh tokens are made. The first makes new
    /// ones, the others only check old ones, for rotation. Without any, a secret is made up at every start, and
    /// sessions do not survive a restart or reach another replica.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub hmac_secret_refs: Vec<SecretKeyRef>,
    /// Whether clients with secrets are allowed although the issuer is a plain http address on the loopback
    /// interface. For development only.
    #[serde(rename = "insecureAllowConfidentialOverLoopbackHTTP", default)]
    pub insecure_allow_confidential_over_loopback_http: bool,
    /// Whether the issuer and the upstream providers may have plain http addresses on any host. For development
    /// only: tokens travel in clear text.
    #[serde(rename = "insecureAllowHTTP", default)]
    pub insecure_allow_http: bool,
    /// The address under which clients reach this server, and the issuer that its tokens name. It has no query, no
    /// fragment and no slash at the end, and it is https except on the loopback interface or with
    /// insecureAllowHTTP.
    #[schemars(regex(pattern = r"^https?://[^\s?#]+[^/\s?#]$"))]
    pub issuer: String,
    /// The upstream provider whose claims authorization policies see. Only a VirtualMCPServer has a choice here; it
    /// defaults to the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub primary_upstream_provider: Option<String>,
    /// Private keys in PEM form with which access tokens are signed. The first signs, the others are published to
    /// check older tokens, for rotation. Without any, a key is made up at every start, and tokens do not survive a
    /// restart or reach another replica.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "atomic"))]
    pub signing_key_secret_refs: Vec<SecretKeyRef>,
    /// Where clients, sessions and upstream tokens are kept. Defaults to memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<AuthServerStorage>,
    /// How long what this server issues is good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_lifespans: Option<TokenLifespans>,
    /// Issuers elsewhere whose tokens are accepted in exchange for tokens of this server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub trusted_issuers: Vec<TrustedIssuer>,
    /// The identity providers where users sign in, in this order. MCPServer and MCPRemoteProxy take exactly one, a
    /// VirtualMCPServer leads users through all of them.
    #[schemars(
        length(min = 1),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub upstream_providers: Vec<UpstreamProvider>,
}

/// How long codes and tokens are good for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenLifespans {
    /// How long an access token is good for, from `1m` to `24h`. Defaults to `1h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_token_lifespan: Option<DurationText>,
    /// How long an authorization code can be redeemed, from `30s` to `10m`. Defaults to `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_code_lifespan: Option<DurationText>,
    /// How long a refresh token is good for, from `1h` to `720h`. Defaults to `168h`, a week.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token_lifespan: Option<DurationText>,
}
