//! How callers prove who they are, as a document and the environment say it.

use skep_api::config::run_config::OidcConfig;
use skep_api::names::env::runner;
use skep_proxy::middleware::{Oidc, OidcSettings};

use super::Variables;
use super::mounted::mounted;

/// Asks callers for tokens as a document says.
pub(super) fn validator(config: &OidcConfig, variables: Variables<'_>) -> Result<Oidc, String> {
    let is_on = |name: &str| variables(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_on(runner::SKIP_OIDC_DISCOVERY) && !config.issuer.is_empty() && config.jwks_url.is_empty() {
        return Err(format!("{} is set, and there is no JWKSURL", runner::SKIP_OIDC_DISCOVERY));
    }
    let file = |path: &str| (!path.is_empty()).then(|| mounted(path, variables));
    let secret = match config.client_secret.expose() {
        "" => variables(runner::OIDC_CLIENT_SECRET).unwrap_or_default(),
        secret => secret.to_owned(),
    };
    if config.audience.trim().is_empty() {
        tracing::warn!("oidc_config has no Audience: every token of the issuer is taken, whomever it is meant for");
    }
    let settings = OidcSettings {
        issuer: config.issuer.clone(),
        audience: config.audience.clone(),
        key_set_url: config.jwks_url.clone(),
        introspection_url: config.introspection_url.clone(),
        client_id: config.client_id.clone(),
        client_secret: secret,
        authorities_file: file(&config.ca_cert_path),
        token_file: file(&config.auth_token_file),
        allows_private: config.allow_private_ip,
        allows_http: config.insecure_allow_http || is_on(runner::INSECURE_DISABLE_URL_VALIDATION),
        resource_url: config.resource_url.clone(),
        scopes: config.scopes.clone().unwrap_or_default(),
    };
    Oidc::new(&settings).map_err(|error| error.to_string())
}
