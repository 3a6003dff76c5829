//! Acting on behalf of a user: how the settings of an MCPExternalAuthConfig become what a proxy is told.

use skep_api::config::run_config::EmbeddedAuthServerConfig;
use skep_api::config::vmcp::outgoing_strategies::Obo;
use skep_api::duration::DurationText;
use skep_api::kinds::outgoing_auth::on_behalf_of::OnBehalfOf;

use super::middleware::first_upstream;
use crate::config::address::{self, Plain, Reach};

/// Who issues tokens when only a tenant is named.
const DEFAULT_AUTHORITY: &str = "https://login.microsoftonline.com";
/// Where an authority exchanges tokens.
const TOKEN_PATH: &str = "oauth2/v2.0/token";

/// What a proxy is told, whatever it stands in front of. The client secret is named by the variable that holds it.
pub(super) fn parameters(settings: &OnBehalfOf, client_secret_variable: &str) -> Result<Obo, String> {
    let token_url = token_url(settings)?;
    address::check("obo: the token endpoint", &token_url, Plain::Allowed, Reach::Private)?;
    Ok(Obo {
        audience: settings.audience.clone(),
        cache_skew_seconds: settings.cache_skew.as_ref().map(seconds).transpose()?,
        client_id: settings.client_id.clone(),
        client_secret_env: settings.client_secret_ref.as_ref().map(|_| client_secret_variable.to_owned()),
        scopes: settings.scopes.clone(),
        subject_token_provider_name: settings.subject_token_provider_name.clone(),
        token_url,
        ..Obo::default()
    })
}

/// Only an auth server inside of the proxy has tokens of a provider. Without them a proxy could not start.
pub(super) fn check_provider(settings: &OnBehalfOf, server: Option<&EmbeddedAuthServerConfig>) -> Result<(), String> {
    const FIELD: &str = "obo.subjectTokenProviderName";
    const OTHERWISE: &str = "remove it, and the token of the caller is exchanged";
    let Some(name) = settings.subject_token_provider_name.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    let Some(server) = server else {
        return Err(format!(
            "{FIELD} {name:?} is a provider of an embedded auth server, and there is none; set authServerRef to one with \
             that provider, or {OTHERWISE}"
        ));
    };
    // There is one: only a VirtualMCPServer can have several.
    let known = first_upstream(server);
    if known == name {
        return Ok(());
    }
    Err(format!(
        "{FIELD} {name:?} is no provider of the embedded auth server, which has {known:?}; name that one, or {OTHERWISE}"
    ))
}

fn seconds(skew: &DurationText) -> Result<i32, String> {
    let skew = skew.parse().map_err(|error| format!("obo.cacheSkew: {error}"))?;
    i32::try_from(skew.as_secs()).map_err(|_| "obo.cacheSkew is longer than 68 years".to_owned())
}

fn token_url(settings: &OnBehalfOf) -> Result<String, String> {
    let authority = settings.authority.as_deref().filter(|authority| !authority.is_empty());
    let tenant = settings.tenant_id.as_deref().filter(|tenant| !tenant.is_empty());
    match (authority, tenant) {
        (None, None) => Err("obo needs authority or tenantId: without them nobody knows where tokens are exchanged; \
                             set one of them in the MCPExternalAuthConfig"
            .to_owned()),
        (Some(authority), None) => Ok(format!("{authority}/{TOKEN_PATH}")),
        (authority, Some(tenant)) => Ok(format!("{}/{tenant}/{TOKEN_PATH}", authority.unwrap_or(DEFAULT_AUTHORITY))),
    }
}
