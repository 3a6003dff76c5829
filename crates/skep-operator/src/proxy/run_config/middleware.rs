//! The chain of steps that every request passes, outermost first, as the rest of the document asks for it.

use serde::Serialize;
use skep_api::config::run_config::middleware::{
    AuditParameters, AuthParameters, AuthorizationParameters, AwsStsParameters, BodyLimitParameters,
    HeaderForwardParameters, NoParameters, RateLimitParameters, TelemetryParameters, TokenExchangeParameters,
    ToolFilterParameters, ToolOverrideParameters, UpstreamSwapParameters, WebhookParameters,
};
use skep_api::config::run_config::{
    EmbeddedAuthServerConfig, HeaderStrategy, MiddlewareConfig, MiddlewareType, RunConfig, ToolOverride,
    UpstreamSwapConfig, WebhookConfig,
};

/// The chain of a document. Its order is the contract.
///
/// There is no step that counts usage: Skep sends no numbers to anybody, and a proxy of another make that reads this
/// chain does not either.
pub fn chain(config: &RunConfig) -> Result<Vec<MiddlewareConfig>, String> {
    check(config)?;
    let mut chain = Chain::default();
    chain.add(
        MiddlewareType::BodyLimit,
        &BodyLimitParameters { max_bytes: BodyLimitParameters::DEFAULT_MAX_BYTES, ..BodyLimitParameters::default() },
    )?;
    chain.add_some(MiddlewareType::Audit, audit(config).as_ref())?;
    let auth = AuthParameters { oidc_config: config.oidc_config.clone(), ..AuthParameters::default() };
    chain.add(MiddlewareType::Auth, &auth)?;
    match &config.embedded_auth_server_config {
        None => {}
        Some(server) if server.disable_upstream_token_injection => {
            chain.add(MiddlewareType::StripAuth, &NoParameters::default())?;
        }
        Some(server) => chain.add(MiddlewareType::UpstreamSwap, &upstream_swap(server))?,
    }
    chain.add_some(MiddlewareType::TokenExchange, token_exchange(config).as_ref())?;
    let tools = tool_filter(config);
    chain.add_some(MiddlewareType::ToolFilter, tools.as_ref())?;
    chain.add_some(MiddlewareType::ToolCallFilter, tools.as_ref())?;
    chain.add(MiddlewareType::McpParser, &NoParameters::default())?;
    chain.add_some(MiddlewareType::Telemetry, telemetry(config).as_ref())?;
    chain.add_some(MiddlewareType::RateLimit, rate_limit(config).as_ref())?;
    chain.add_some(MiddlewareType::MutatingWebhook, webhooks(config, &config.mutating_webhooks).as_ref())?;
    chain.add_some(MiddlewareType::ValidatingWebhook, webhooks(config, &config.validating_webhooks).as_ref())?;
    chain.add_some(MiddlewareType::Authorization, authorization(config).as_ref())?;
    chain.add_some(MiddlewareType::AwsSts, aws_sts(config).as_ref())?;
    chain.add_some(MiddlewareType::HeaderForward, header_forward(config).as_ref())?;
    chain.0.extend(config.additional_middleware_configs.iter().cloned());
    // Not an object: the step has no parameters at all.
    chain.add(MiddlewareType::Recovery, &())?;
    Ok(chain.0)
}

#[derive(Default)]
struct Chain(Vec<MiddlewareConfig>);

impl Chain {
    fn add(&mut self, type_: MiddlewareType, parameters: &impl Serialize) -> Result<(), String> {
        let name = type_.as_str().to_owned();
        self.0.push(MiddlewareConfig::new(type_, parameters).map_err(|error| format!("{name}: {error}"))?);
        Ok(())
    }

    fn add_some(&mut self, type_: MiddlewareType, parameters: Option<&impl Serialize>) -> Result<(), String> {
        parameters.map_or(Ok(()), |parameters| self.add(type_, parameters))
    }
}

/// Steps that cannot work, or not together.
fn check(config: &RunConfig) -> Result<(), String> {
    if config.aws_sts_config.is_some() && config.remote_url.is_empty() {
        return Err(
            "AWS STS middleware requires a remote URL: SigV4 signing is only meaningful for remote MCP servers"
                .to_owned(),
        );
    }
    let strips = config.embedded_auth_server_config.as_ref().is_some_and(|it| it.disable_upstream_token_injection);
    let acts = config.additional_middleware_configs.iter().any(|step| step.type_ == MiddlewareType::Obo);
    let needs_token = [
        ("token exchange", config.token_exchange_config.is_some()),
        ("AWS STS", config.aws_sts_config.is_some()),
        ("on-behalf-of", acts),
    ];
    match needs_token.into_iter().find(|(_, is_set)| strips && *is_set) {
        Some((step, _)) => Err(format!(
            "disableUpstreamTokenInjection cannot be combined with {step}: it removes the token that {step} starts from; \
             remove one of the two"
        )),
        None => Ok(()),
    }
}

fn audit(config: &RunConfig) -> Option<AuditParameters> {
    Some(AuditParameters {
        component: config.name.clone(),
        config_data: Some(config.audit_config.clone()?),
        transport_type: config.transport.as_str().to_owned(),
        ..AuditParameters::default()
    })
}

fn upstream_swap(server: &EmbeddedAuthServerConfig) -> UpstreamSwapParameters {
    let swap = UpstreamSwapConfig {
        header_strategy: HeaderStrategy::Replace,
        provider_name: first_upstream(server).to_owned(),
        ..UpstreamSwapConfig::default()
    };
    UpstreamSwapParameters { config: Some(swap), ..UpstreamSwapParameters::default() }
}

fn token_exchange(config: &RunConfig) -> Option<TokenExchangeParameters> {
    let token_exchange_config = Some(config.token_exchange_config.clone()?);
    Some(TokenExchangeParameters { token_exchange_config, ..TokenExchangeParameters::default() })
}

fn tool_filter(config: &RunConfig) -> Option<ToolFilterParameters> {
    let shown = |(tool, shown): (&String, &ToolOverride)| {
        let parameters = ToolOverrideParameters {
            annotations: shown.annotations.clone(),
            description: shown.description.clone(),
            name: shown.name.clone(),
            ..ToolOverrideParameters::default()
        };
        (tool.clone(), parameters)
    };
    let filter = &config.tools_filter;
    let overrides = &config.tools_override;
    let parameters = ToolFilterParameters {
        filter_tools: (!filter.is_empty()).then(|| filter.clone()),
        tools_override: (!overrides.is_empty()).then(|| overrides.iter().map(shown).collect()),
        ..ToolFilterParameters::default()
    };
    (parameters != ToolFilterParameters::default()).then_some(parameters)
}

fn telemetry(config: &RunConfig) -> Option<TelemetryParameters> {
    Some(TelemetryParameters {
        config: Some(config.telemetry_config.clone()?),
        server_name: config.name.clone(),
        transport: config.transport.as_str().to_owned(),
        ..TelemetryParameters::default()
    })
}

/// Without Redis there is nothing to say about it: whoever reads this decides whether to count alone.
fn rate_limit(config: &RunConfig) -> Option<RateLimitParameters> {
    let limits = config.rate_limit_config.clone()?;
    let redis = config.scaling_config.as_ref().and_then(|scaling| scaling.session_redis.clone()).unwrap_or_default();
    Some(RateLimitParameters {
        config: Some(limits),
        namespace: config.rate_limit_namespace.clone(),
        redis_addr: redis.address,
        redis_db: redis.db,
        server_name: config.name.clone(),
        ..RateLimitParameters::default()
    })
}

fn webhooks(config: &RunConfig, webhooks: &[WebhookConfig]) -> Option<WebhookParameters> {
    (!webhooks.is_empty()).then(|| WebhookParameters {
        server_name: config.name.clone(),
        transport: config.transport.as_str().to_owned(),
        webhooks: webhooks.to_vec(),
        ..WebhookParameters::default()
    })
}

/// Policies see the claims of the identity provider behind the embedded auth server, where there is one.
fn authorization(config: &RunConfig) -> Option<AuthorizationParameters> {
    let policies = config.authz_config.as_ref()?;
    let policies = match &config.embedded_auth_server_config {
        Some(server) => policies.with_primary_upstream_provider(first_upstream(server)),
        None => policies.clone(),
    };
    Some(AuthorizationParameters { config_data: Some(policies), ..AuthorizationParameters::default() })
}

fn aws_sts(config: &RunConfig) -> Option<AwsStsParameters> {
    Some(AwsStsParameters {
        aws_sts_config: Some(config.aws_sts_config.clone()?),
        target_url: config.remote_url.clone(),
        ..AwsStsParameters::default()
    })
}

/// Only headers with literal values: the proxy adds a step of its own for secret ones.
fn header_forward(config: &RunConfig) -> Option<HeaderForwardParameters> {
    let add_headers = config.header_forward.as_ref()?.add_plaintext_headers.clone();
    (!add_headers.is_empty()).then(|| HeaderForwardParameters { add_headers, ..HeaderForwardParameters::default() })
}

/// The identity provider behind an auth server.
pub(super) fn first_upstream(server: &EmbeddedAuthServerConfig) -> &str {
    server.upstreams().first().map(|upstream| upstream.name.as_str()).unwrap_or_default()
}
