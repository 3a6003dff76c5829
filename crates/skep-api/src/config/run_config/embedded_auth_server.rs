//! The authorization server that a proxy can carry. The aggregating server reads the same document as YAML from a
//! file beside its own configuration.

use crate::config::document::object;
use crate::duration::DurationText;

use super::auth_server_storage::AuthServerStorage;
use super::auth_server_upstream::AuthServerUpstream;

object! {
    /// An OAuth 2.1 authorization server in the process of the proxy.
    pub struct EmbeddedAuthServerConfig {
        omit allow_confidential_client_registration: bool,
        /// The resources that tokens may be issued for. Null when unset; it must not stay so.
        always allowed_audiences: Option<Vec<String>>,
        /// Moves the advertised authorization endpoint, and nothing else.
        omit authorization_endpoint_base_url: String,
        /// The scopes that every registered client gets.
        omit baseline_client_scopes: Vec<String>,
        /// Clients whose id is the URL of their metadata.
        omit cimd: Option<CimdConfig>,
        omit delegate_clients: Vec<DelegateClient>,
        /// Unset means 15 minutes.
        omit delegation_token_lifespan: DurationText,
        /// Whether the upstream token is kept from the backend.
        omit disable_upstream_token_injection: bool,
        omit force_confidential_redirect_uris: Vec<String>,
        /// The first file is the current secret, the others only verify. None means a secret that dies with the
        /// process.
        omit hmac_secret_files: Vec<String>,
        omit insecure_allow_confidential_over_loopback_http: bool,
        omit insecure_allow_http: bool,
        always issuer: String,
        always schema_version: String,
        /// None means the four common ones.
        omit scopes_supported: Vec<String>,
        /// None means a key that dies with the process.
        omit signing_key_config: Option<SigningKeyConfig>,
        /// None means memory.
        omit storage: Option<AuthServerStorage>,
        omit token_lifespans: Option<TokenLifespans>,
        omit trusted_issuers: Vec<TrustedIssuer>,
        /// The identity providers that users log in at. Null when unset; it must not stay so.
        always upstreams: Option<Vec<AuthServerUpstream>>,
    }
}

impl EmbeddedAuthServerConfig {
    pub const SCHEMA_VERSION: &str = "v0.1.0";
    pub const DEFAULT_SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];

    /// The upstreams, none when null.
    pub fn upstreams(&self) -> &[AuthServerUpstream] {
        self.upstreams.as_deref().unwrap_or_default()
    }
}

object! {
    /// The files with the keys that sign tokens.
    pub struct SigningKeyConfig {
        /// Keys that only verify, from before a rotation.
        omit fallback_key_files: Vec<String>,
        omit key_dir: String,
        omit signing_key_file: String,
    }
}

object! {
    /// How long tokens live.
    pub struct TokenLifespans {
        /// Unset means 1 hour.
        omit access_token_lifespan: DurationText,
        /// Unset means 10 minutes.
        omit auth_code_lifespan: DurationText,
        /// Unset means 168 hours.
        omit refresh_token_lifespan: DurationText,
    }
}

object! {
    /// Clients whose id is the URL of their metadata.
    pub struct CimdConfig {
        /// Unset means 5 minutes.
        omit cache_fallback_ttl: DurationText,
        /// 0 means 256.
        omit cache_max_size: i64,
        always enabled: bool,
    }
}

object! {
    /// A client that may act for users. Its secret comes from a file or from the environment.
    pub struct DelegateClient {
        omit audiences: Vec<String>,
        omit client_id: String,
        omit client_secret_env_var: String,
        omit client_secret_file: String,
        omit scopes: Vec<String>,
    }
}

object! {
    /// Another issuer whose tokens are accepted in exchange for own ones.
    pub struct TrustedIssuer {
        /// The claim that names who acts; empty means `azp`.
        omit actor_claim: String,
        /// A CEL expression over `claims`.
        omit actor_matcher: String,
        omit allow_may_act: bool,
        omit allow_private_ips: bool,
        omit allowed_actors: Vec<String>,
        /// `*` alone means any.
        omit allowed_delegate_clients: Vec<String>,
        always expected_audience: String,
        omit insecure_allow_http: bool,
        omit issuer_url: String,
        omit jwks_url: String,
        omit jwt_bearer_grant: Option<JwtBearerGrant>,
    }
}

object! {
    /// Tokens in exchange for signed assertions, after RFC 7523.
    pub struct JwtBearerGrant {
        /// None means the token endpoint.
        omit accepted_audiences: Vec<String>,
        omit max_assertion_age: DurationText,
        omit subject_bindings: Vec<SubjectBinding>,
    }
}

object! {
    /// The resources that one subject may ask for.
    pub struct SubjectBinding {
        omit allowed_resources: Vec<String>,
        omit subject: String,
    }
}
