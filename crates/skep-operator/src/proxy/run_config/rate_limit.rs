//! How many tool calls are let through.

use skep_api::config::run_config::{RateLimitConfig, RunConfig, TokenBucket, ToolRateLimit};
use skep_api::kinds::mcp_server::MCPServerSpec;
use skep_api::kinds::rate_limit;

use crate::proxy::Inputs;

pub(super) fn add(inputs: &Inputs<'_>, spec: &MCPServerSpec, config: &mut RunConfig) -> Result<(), String> {
    let Some(limits) = &spec.rate_limiting else { return Ok(()) };
    if config.scaling_config.as_ref().is_none_or(|scaling| scaling.session_redis.is_none()) {
        return Err("rateLimiting needs a Redis server to count in; set sessionStorage with provider redis".to_owned());
    }
    let tool = |limit: &rate_limit::ToolRateLimit| -> Result<ToolRateLimit, String> {
        let place = format!("rateLimiting.tools[{}]", limit.name);
        Ok(ToolRateLimit {
            name: limit.name.clone(),
            per_user: bucket(&format!("{place}.perUser"), limit.per_user.as_ref())?,
            shared: bucket(&format!("{place}.shared"), limit.shared.as_ref())?,
            ..ToolRateLimit::default()
        })
    };
    config.rate_limit_config = Some(RateLimitConfig {
        per_user: bucket("rateLimiting.perUser", limits.per_user.as_ref())?,
        shared: bucket("rateLimiting.shared", limits.shared.as_ref())?,
        tools: limits.tools.iter().map(tool).collect::<Result<_, _>>()?,
        ..RateLimitConfig::default()
    });
    inputs.common.namespace.clone_into(&mut config.rate_limit_namespace);
    Ok(())
}

fn bucket(place: &str, bucket: Option<&rate_limit::TokenBucket>) -> Result<Option<TokenBucket>, String> {
    let Some(bucket) = bucket else { return Ok(None) };
    let period = bucket.refill_period.parse().map_err(|error| format!("{place}.refillPeriod: {error}"))?;
    if period.is_zero() {
        return Err(format!("{place}.refillPeriod must be longer than 0"));
    }
    if bucket.max_tokens < 1 {
        return Err(format!("{place}.maxTokens must be at least 1"));
    }
    Ok(Some(TokenBucket {
        max_tokens: i64::from(bucket.max_tokens),
        refill_period: period.into(),
        ..TokenBucket::default()
    }))
}
