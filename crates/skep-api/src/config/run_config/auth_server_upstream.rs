//! The identity providers that users of the embedded authorization server log in at.

use std::collections::BTreeMap;

use crate::config::document::{object, word};
use crate::sensitive::Sensitive;

object! {
    /// One identity provider.
    pub struct AuthServerUpstream {
        /// Empty means `default`, if it is the only one.
        omit name: String,
        /// Set when the type is oauth2.
        omit oauth2_config: Option<OAuth2Upstream>,
        /// Set when the type is oidc.
        omit oidc_config: Option<OidcUpstream>,
        omit type_: UpstreamType = "type",
    }
}

word! {
    /// Kinds of identity providers.
    pub enum UpstreamType {
        /// With discovery and ID tokens.
        Oidc = "oidc",
        /// With plain OAuth 2.
        OAuth2 = "oauth2",
    }
}

object! {
    /// An OpenID provider.
    pub struct OidcUpstream {
        omit additional_authorization_params: BTreeMap<String, String>,
        omit allow_private_ips: bool,
        omit client_id: String,
        omit client_secret_env_var: String,
        omit client_secret_file: String,
        omit insecure_allow_http: bool,
        omit issuer_url: String,
        omit redirect_uri: String,
        omit scopes: Vec<String>,
        omit subject_claim: String,
        omit userinfo_override: Option<UserinfoConfig>,
    }
}

object! {
    /// An OAuth 2 provider. Either `client_id` or `dcr_config` is set.
    pub struct OAuth2Upstream {
        omit additional_authorization_params: BTreeMap<String, String>,
        omit allow_private_ips: bool,
        always authorization_endpoint: String,
        always client_id: String,
        omit client_secret_env_var: String,
        omit client_secret_file: String,
        omit dcr_config: Option<DcrConfig>,
        /// Where in the token response the user is described.
        omit identity_from_token: Option<IdentityFromToken>,
        omit insecure_allow_http: bool,
        omit redirect_uri: String,
        omit scopes: Vec<String>,
        always token_endpoint: String,
        omit token_response_mapping: Option<TokenResponseMapping>,
        omit userinfo: Option<UserinfoConfig>,
    }
}

object! {
    /// Dynamic registration at the provider. Either `discovery_url` or `registration_endpoint` is set.
    pub struct DcrConfig {
        omit discovery_url: String,
        omit initial_access_token_env_var: String,
        omit initial_access_token_file: String,
        omit registration_endpoint: String,
        omit software_id: String,
        omit software_statement: Sensitive,
    }
}

object! {
    /// Where a token response that is not standard has its parts.
    pub struct TokenResponseMapping {
        omit access_token_path: String,
        omit expires_in_path: String,
        omit refresh_token_path: String,
        omit scope_path: String,
    }
}

object! {
    /// Where a token response describes the user.
    pub struct IdentityFromToken {
        omit email_path: String,
        omit name_path: String,
        omit subject_path: String,
    }
}

object! {
    /// An endpoint that describes the user.
    pub struct UserinfoConfig {
        omit additional_headers: BTreeMap<String, Sensitive>,
        omit endpoint_url: String,
        omit field_mapping: Option<UserinfoFields>,
        /// `GET` or `POST`.
        omit http_method: String,
    }
}

object! {
    /// The fields that describe the user, in the order in which they are tried.
    pub struct UserinfoFields {
        omit email_fields: Vec<String>,
        omit name_fields: Vec<String>,
        omit subject_fields: Vec<String>,
    }
}
