//! How often tools may be called, as a document says it.

use std::time::Duration;

use skep_api::config::run_config::TokenBucket;
use skep_api::config::run_config::middleware::RateLimitParameters;
use skep_api::names::env::runner;
use skep_proxy::middleware::{Bucket, CallLimits, RateLimit, RateLimits};
use skep_proxy::{Redis, RedisSettings};

use super::{Variables, in_cluster};

/// Counts calls: in the Redis of the document, which has to be there, or without one in this process. The latter is for a
/// proxy that somebody runs by themselves; in a cluster there may be several, and each would let a whole limit pass.
pub(super) async fn limiter(parameters: &RateLimitParameters, variables: Variables<'_>) -> Result<RateLimit, String> {
    let config = parameters.config.as_ref().ok_or("it has no config")?;
    let is_alone = parameters.redis_addr.is_empty();
    if is_alone && in_cluster::is_pod(variables) {
        return Err("it needs a Redis server to count in; set sessionStorage with provider redis".to_owned());
    }
    let all = limits("shared", config.shared.as_ref(), config.per_user.as_ref())?;
    let tools = config.tools.iter().map(|tool| {
        let limits = limits(&tool.name, tool.shared.as_ref(), tool.per_user.as_ref())?;
        Ok((tool.name.clone(), limits))
    });
    let tools = tools.collect::<Result<_, String>>()?;
    let (namespace, server) = (parameters.namespace.clone(), parameters.server_name.clone());
    let limits = RateLimits { namespace, server, all, tools };
    if is_alone {
        tracing::warn!("there is no Redis: calls are counted in this process alone, and anew when it starts again");
        return RateLimit::in_memory(limits).map_err(|error| error.to_string());
    }
    let settings = RedisSettings {
        database: i64::from(parameters.redis_db),
        password: variables(runner::SESSION_REDIS_PASSWORD).filter(|password| !password.is_empty()),
        ..RedisSettings::new(&parameters.redis_addr)
    };
    let redis = Redis::connect(&settings).await.map_err(|error| error.to_string())?;
    RateLimit::in_redis(limits, &redis).map_err(|error| error.to_string())
}

fn limits(whose: &str, shared: Option<&TokenBucket>, per_user: Option<&TokenBucket>) -> Result<CallLimits, String> {
    let read = |bucket: &TokenBucket| {
        let wrong = |field: &str| format!("{whose}: {field} must be above zero");
        let tokens = u32::try_from(bucket.max_tokens).ok().filter(|tokens| *tokens > 0);
        let period = bucket.refill_period.parse().ok().filter(|period| *period > Duration::ZERO);
        let tokens = tokens.ok_or_else(|| wrong("maxTokens"))?;
        Ok::<_, String>(Bucket { tokens, period: period.ok_or_else(|| wrong("refillPeriod"))? })
    };
    Ok(CallLimits { shared: shared.map(read).transpose()?, per_user: per_user.map(read).transpose()? })
}
