//! With which credentials requests go on to the server.

use skep_api::config::run_config::{
    AwsStsConfig, HeaderStrategy, MiddlewareConfig, MiddlewareType, RemoteAuthConfig, RoleMapping, RunConfig,
    TokenExchangeConfig,
};
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPExternalAuthConfig;
use skep_api::kinds::mcp_external_auth_config::ExternalAuthType;
use skep_api::kinds::outgoing_auth::BearerToken;
use skep_api::kinds::outgoing_auth::aws_sts::{self, AwsSts};
use skep_api::kinds::outgoing_auth::token_exchange::TokenExchange;
use skep_api::names::env::runner;

use super::{named, on_behalf_of, text};
use crate::config::address::{self, Plain, Reach};
use crate::proxy::Inputs;

/// What the short names of token types stand for.
const TOKEN_TYPE_PREFIX: &str = "urn:ietf:params:oauth:token-type:";
const TOKEN_TYPES: [&str; 3] = ["access_token", "id_token", "jwt"];

/// The object of `spec.externalAuthConfigRef`.
pub(super) fn find<'a>(inputs: &Inputs<'a>) -> Result<Option<&'a MCPExternalAuthConfig>, String> {
    let reference = inputs.common.external_auth_config_ref;
    named(MCPExternalAuthConfig::DEFINITION.kind, reference, inputs.resolved.external_auth.as_ref())
}

/// Adds what the type asks for. An embedded auth server is no outgoing credential and is added elsewhere; some types
/// have an effect in a VirtualMCPServer only.
pub(super) fn add(inputs: &Inputs<'_>, config: &mut RunConfig) -> Result<(), String> {
    let Some(object) = find(inputs)? else { return Ok(()) };
    let spec = &object.spec;
    match spec.type_ {
        ExternalAuthType::TokenExchange => {
            let exchange = present("tokenExchange", spec.token_exchange.as_ref())?;
            config.token_exchange_config = Some(token_exchange(exchange)?);
        }
        ExternalAuthType::BearerToken => {
            config.remote_auth_config = Some(bearer_token(present("bearerToken", spec.bearer_token.as_ref())?));
        }
        ExternalAuthType::AwsSts => {
            config.aws_sts_config = Some(aws_sts(present("awsSts", spec.aws_sts.as_ref())?));
        }
        ExternalAuthType::Obo => {
            let settings = present("obo", spec.obo.as_ref())?;
            on_behalf_of::check_provider(settings, config.embedded_auth_server_config.as_ref())?;
            let parameters = on_behalf_of::parameters(settings, runner::ON_BEHALF_OF_CLIENT_SECRET)?;
            let step =
                MiddlewareConfig::new(MiddlewareType::Obo, &parameters).map_err(|error| format!("obo: {error}"))?;
            config.additional_middleware_configs.push(step);
        }
        ExternalAuthType::EmbeddedAuthServer
        | ExternalAuthType::HeaderInjection
        | ExternalAuthType::Unauthenticated
        | ExternalAuthType::UpstreamInject
        | ExternalAuthType::Xaa => {}
    }
    Ok(())
}

/// The member that has the name of the type.
pub(super) fn present<'a, T>(member: &str, value: Option<&'a T>) -> Result<&'a T, String> {
    value.ok_or_else(|| format!("{member} configuration must be set if and only if type is '{member}'"))
}

/// The client secret stays out; it comes from the environment.
fn token_exchange(exchange: &TokenExchange) -> Result<TokenExchangeConfig, String> {
    address::check("tokenExchange.tokenUrl", &exchange.token_url, Plain::Allowed, Reach::Private)?;
    let external_token_header_name = text(exchange.external_token_header_name.as_deref());
    Ok(TokenExchangeConfig {
        audience: exchange.audience.clone(),
        client_id: text(exchange.client_id.as_deref()),
        header_strategy: if external_token_header_name.is_empty() {
            HeaderStrategy::Replace
        } else {
            HeaderStrategy::Custom
        },
        external_token_header_name,
        scopes: exchange.scopes.clone(),
        subject_token_type: token_type(exchange.subject_token_type.as_deref().unwrap_or_default())?,
        token_url: exchange.token_url.clone(),
        ..TokenExchangeConfig::default()
    })
}

fn token_type(name: &str) -> Result<String, String> {
    let short = name.strip_prefix(TOKEN_TYPE_PREFIX).unwrap_or(name);
    if name.is_empty() {
        Ok(String::new())
    } else if TOKEN_TYPES.contains(&short) {
        Ok(format!("{TOKEN_TYPE_PREFIX}{short}"))
    } else {
        Err(format!("tokenExchange.subjectTokenType {name:?} is not one of {}", TOKEN_TYPES.join(", ")))
    }
}

/// The token is named by its Secret; the proxy looks it up in the environment.
fn bearer_token(token: &BearerToken) -> RemoteAuthConfig {
    let bearer_token = format!("{},target=bearer_token", token.token_secret_ref.name).into();
    RemoteAuthConfig { bearer_token, ..RemoteAuthConfig::default() }
}

/// `subjectProviderName` is for a VirtualMCPServer.
fn aws_sts(settings: &AwsSts) -> AwsStsConfig {
    let mapping = |mapping: &aws_sts::RoleMapping| RoleMapping {
        claim: text(mapping.claim.as_deref()),
        matcher: text(mapping.matcher.as_deref()),
        priority: mapping.priority.map(i64::from),
        role_arn: mapping.role_arn.clone(),
        ..RoleMapping::default()
    };
    AwsStsConfig {
        fallback_role_arn: text(settings.fallback_role_arn.as_deref()),
        region: settings.region.clone(),
        role_claim: settings.role_claim.clone(),
        role_mappings: settings.role_mappings.iter().map(mapping).collect(),
        service: settings.service.clone(),
        session_duration: Some(i64::from(settings.session_duration)),
        session_name_claim: settings.session_name_claim.clone(),
        ..AwsStsConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_types_are_written_in_full() {
        for name in ["jwt", "urn:ietf:params:oauth:token-type:jwt"] {
            assert_eq!(token_type(name).as_deref(), Ok("urn:ietf:params:oauth:token-type:jwt"));
        }
        assert_eq!(token_type("").as_deref(), Ok(""));
        for name in ["saml2", "urn:ietf:params:oauth:token-type:", "urn:ietf:params:oauth:token-type:saml2"] {
            assert!(token_type(name).unwrap_err().contains(name), "{name}");
        }
    }
}
