//! How the tokens of callers are checked.

use crate::config::document::object;
use crate::sensitive::Sensitive;

object! {
    /// The issuer of the callers' tokens and how to reach it. The member names are written in Pascal case, all of
    /// them always.
    pub struct OidcConfig {
        /// Whether the issuer may be at a private address.
        always allow_private_ip: bool = "AllowPrivateIP",
        /// The audience that tokens must have; empty means that it is not checked.
        always audience: String = "Audience",
        /// A file whose text is the bearer token for discovery, key set and introspection requests.
        always auth_token_file: String = "AuthTokenFile",
        /// A file with the certificates to trust instead of the system's.
        always ca_cert_path: String = "CACertPath",
        /// The client id for introspection.
        always client_id: String = "ClientID",
        /// The client secret for introspection. The operator leaves it empty and passes the secret in the environment.
        always client_secret: Sensitive = "ClientSecret",
        /// Whether the issuer may be reached without TLS.
        always insecure_allow_http: bool = "InsecureAllowHTTP",
        /// Where opaque tokens are checked; empty means that they are not accepted.
        always introspection_url: String = "IntrospectionURL",
        /// The `iss` that tokens must have, and where discovery begins.
        always issuer: String = "Issuer",
        /// The key set; empty means that discovery finds it.
        always jwks_url: String = "JWKSURL",
        /// The `resource` of the protected-resource metadata.
        always resource_url: String = "ResourceURL",
        /// The scopes to advertise; null when unset.
        always scopes: Option<Vec<String>> = "Scopes",
    }
}
