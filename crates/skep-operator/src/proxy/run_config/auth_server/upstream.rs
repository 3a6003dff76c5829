//! The identity providers where users sign in.

use skep_api::config::run_config::{
    AuthServerUpstream, DcrConfig, IdentityFromToken, OAuth2Upstream, OidcUpstream, TokenResponseMapping, UpstreamType,
    UserinfoConfig, UserinfoFields,
};
use skep_api::kinds::auth_server::upstream::{self as kind, OIDCUpstream, UpstreamProvider};
use skep_api::kinds::auth_server::upstream_oauth2::{self as oauth2_kind, ClientRegistration};
use skep_api::kinds::auth_server::user_info::{UserInfo, UserInfoMethod};
use skep_api::names::{auth_server, env};

use super::text;

pub(super) fn translate(providers: &[UpstreamProvider], resource: &str) -> Result<Vec<AuthServerUpstream>, String> {
    if providers.is_empty() {
        return Err("upstreamProviders must have at least one identity provider".to_owned());
    }
    let numbered = providers.iter().enumerate();
    numbered
        .map(|(index, provider)| {
            one(provider, resource).map_err(|cause| format!("upstreamProviders[{index}]: {cause}"))
        })
        .collect()
}

fn one(provider: &UpstreamProvider, resource: &str) -> Result<AuthServerUpstream, String> {
    let named = AuthServerUpstream { name: provider.name.clone(), ..AuthServerUpstream::default() };
    match (provider.type_, &provider.oidc_config, &provider.oauth2_config) {
        (kind::UpstreamType::Oidc, Some(config), None) => Ok(AuthServerUpstream {
            oidc_config: Some(oidc(&provider.name, config, resource)),
            type_: UpstreamType::Oidc,
            ..named
        }),
        (kind::UpstreamType::Oauth2, None, Some(config)) => Ok(AuthServerUpstream {
            oauth2_config: Some(oauth2(&provider.name, config, resource)),
            type_: UpstreamType::OAuth2,
            ..named
        }),
        _ => {
            Err("type must be 'oidc' or 'oauth2'; oidcConfig must be set when type is 'oidc' and oauth2Config must be \
                  set when type is 'oauth2' (and the other must not be set)"
                .to_owned())
        }
    }
}

fn oidc(name: &str, config: &OIDCUpstream, resource: &str) -> OidcUpstream {
    OidcUpstream {
        additional_authorization_params: config.additional_authorization_params.clone(),
        client_id: config.client_id.clone(),
        client_secret_env_var: config
            .client_secret_ref
            .as_ref()
            .map(|_| env::upstream_client_secret(name))
            .unwrap_or_default(),
        issuer_url: config.issuer_url.clone(),
        redirect_uri: redirect_uri(config.redirect_uri.as_deref(), resource),
        scopes: config.scopes.clone(),
        subject_claim: text(config.subject_claim.as_deref()),
        userinfo_override: config.user_info_override.as_ref().map(user_info),
        ..OidcUpstream::default()
    }
}

fn oauth2(name: &str, config: &oauth2_kind::OAuth2Upstream, resource: &str) -> OAuth2Upstream {
    OAuth2Upstream {
        additional_authorization_params: config.additional_authorization_params.clone(),
        allow_private_ips: config.allow_private_ips.unwrap_or_default(),
        authorization_endpoint: config.authorization_endpoint.clone(),
        client_id: text(config.client_id.as_deref()),
        client_secret_env_var: config
            .client_secret_ref
            .as_ref()
            .map(|_| env::upstream_client_secret(name))
            .unwrap_or_default(),
        dcr_config: config.dcr_config.as_ref().map(|settings| registration(name, settings)),
        identity_from_token: config.identity_from_token.as_ref().map(identity),
        insecure_allow_http: config.insecure_allow_http.unwrap_or_default(),
        redirect_uri: redirect_uri(config.redirect_uri.as_deref(), resource),
        scopes: config.scopes.clone(),
        token_endpoint: config.token_endpoint.clone(),
        token_response_mapping: config.token_response_mapping.as_ref().map(mapping),
        userinfo: config.user_info.as_ref().map(user_info),
        ..OAuth2Upstream::default()
    }
}

fn redirect_uri(given: Option<&str>, resource: &str) -> String {
    given.filter(|uri| !uri.is_empty()).map_or_else(|| auth_server::redirect_uri(resource), ToOwned::to_owned)
}

fn registration(name: &str, settings: &ClientRegistration) -> DcrConfig {
    DcrConfig {
        discovery_url: text(settings.discovery_url.as_deref()),
        initial_access_token_env_var: settings
            .initial_access_token_ref
            .as_ref()
            .map(|_| env::upstream_initial_access_token(name))
            .unwrap_or_default(),
        registration_endpoint: text(settings.registration_endpoint.as_deref()),
        software_id: text(settings.software_id.as_deref()),
        software_statement: settings.software_statement.clone().unwrap_or_default(),
        ..DcrConfig::default()
    }
}

fn identity(paths: &oauth2_kind::IdentityFromToken) -> IdentityFromToken {
    IdentityFromToken {
        email_path: text(paths.email_path.as_deref()),
        name_path: text(paths.name_path.as_deref()),
        subject_path: paths.subject_path.clone(),
        ..IdentityFromToken::default()
    }
}

fn mapping(paths: &oauth2_kind::TokenResponseMapping) -> TokenResponseMapping {
    TokenResponseMapping {
        access_token_path: paths.access_token_path.clone(),
        expires_in_path: text(paths.expires_in_path.as_deref()),
        refresh_token_path: text(paths.refresh_token_path.as_deref()),
        scope_path: text(paths.scope_path.as_deref()),
        ..TokenResponseMapping::default()
    }
}

fn user_info(endpoint: &UserInfo) -> UserinfoConfig {
    let method = endpoint.http_method.map(|method| match method {
        UserInfoMethod::Get => "GET",
        UserInfoMethod::Post => "POST",
    });
    UserinfoConfig {
        additional_headers: endpoint.additional_headers.clone(),
        endpoint_url: endpoint.endpoint_url.clone(),
        field_mapping: endpoint.field_mapping.as_ref().map(|fields| UserinfoFields {
            email_fields: fields.email_fields.clone(),
            name_fields: fields.name_fields.clone(),
            subject_fields: fields.subject_fields.clone(),
            ..UserinfoFields::default()
        }),
        http_method: text(method),
        ..UserinfoConfig::default()
    }
}
