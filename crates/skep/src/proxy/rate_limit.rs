//! How often tools may be called, as a document says it.

use std::collections::HashMap;
use std::time::Duration;

use skep_api::config::run_config::middleware::RateLimitParameters;
use skep_api::config::run_config::{TokenBucket, ToolRateLimit};
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
    let all = limits("", config.shared.as_ref(), config.per_user.as_ref())?;
    let tools = tools(&config.tools)?;
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
    let redis = Redis::connect(&settings).await.map_err(|error| {
        format!("{error}; the password is taken from the variable {}", runner::SESSION_REDIS_PASSWORD)
    })?;
    RateLimit::in_redis(limits, &redis).map_err(|error| error.to_string())
}

/// The limits of single tools. One that limits nothing, or nobody knows what, is a mistake.
fn tools(tools: &[ToolRateLimit]) -> Result<HashMap<String, CallLimits>, String> {
    let mut read = HashMap::with_capacity(tools.len());
    for (index, tool) in tools.iter().enumerate() {
        let wrong = |problem: &str| Err(format!("tools[{index}] {problem}"));
        if tool.name.is_empty() {
            return wrong("has no name");
        }
        if tool.shared.is_none() && tool.per_user.is_none() {
            return wrong("has neither shared nor perUser, and so no limit");
        }
        let limits = limits(&format!("tools[{index}]."), tool.shared.as_ref(), tool.per_user.as_ref())?;
        if read.insert(tool.name.clone(), limits).is_some() {
            return wrong(&format!("is the second for {:?}", tool.name));
        }
    }
    Ok(read)
}

fn limits(place: &str, shared: Option<&TokenBucket>, per_user: Option<&TokenBucket>) -> Result<CallLimits, String> {
    let read = |member: &str, bucket: &TokenBucket| {
        let tokens = u32::try_from(bucket.max_tokens).ok().filter(|tokens| *tokens > 0);
        let period = bucket.refill_period.parse().ok().filter(|period| *period > Duration::ZERO);
        let tokens = tokens.ok_or_else(|| format!("{place}{member}: maxTokens must be above zero"))?;
        let period = period.ok_or_else(|| {
            let text = &bucket.refill_period.0;
            format!("{place}{member}: refillPeriod {text:?} must be a time above zero, such as 30s, 1m or 1h30m")
        })?;
        Ok::<_, String>(Bucket { tokens, period })
    };
    let read = |member: &str, bucket: Option<&TokenBucket>| bucket.map(|bucket| read(member, bucket)).transpose();
    Ok(CallLimits { shared: read("shared", shared)?, per_user: read("perUser", per_user)? })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use skep_api::config::document;

    use super::*;

    async fn made(config: Value) -> Result<(), String> {
        let parameters = document::read(json!({ "config": config })).unwrap();
        limiter(&parameters, &|_| None).await.map(drop)
    }

    #[tokio::test]
    async fn limits_that_limit_nothing_or_cannot_be_read_are_named() {
        let bucket = json!({"maxTokens": 1, "refillPeriod": "1m"});
        let good =
            json!({"perUser": bucket, "tools": [{"name": "a", "shared": bucket}, {"name": "b", "perUser": bucket}]});
        assert_eq!(made(good).await, Ok(()));
        for (config, told) in [
            (json!({"tools": [{"shared": bucket}]}), "tools[0] has no name"),
            (json!({"tools": [{"name": "a"}]}), "tools[0] has neither shared nor perUser, and so no limit"),
            (
                json!({"tools": [{"name": "a", "shared": bucket}, {"name": "a", "perUser": bucket}]}),
                "tools[1] is the second for \"a\"",
            ),
            (
                json!({"shared": {"maxTokens": 1, "refillPeriod": "soon"}}),
                "shared: refillPeriod \"soon\" must be a time above zero, such as 30s, 1m or 1h30m",
            ),
            (
                json!({"tools": [{"name": "a", "perUser": {"maxTokens": 0, "refillPeriod": "1m"}}]}),
                "tools[0].perUser: maxTokens must be above zero",
            ),
        ] {
            assert_eq!(made(config).await.unwrap_err(), told);
        }
    }

    #[tokio::test]
    async fn whoever_cannot_count_in_redis_is_told_where_its_password_comes_from() {
        let parameters = document::read(json!({"config": {}, "redis_addr": "127.0.0.1:1"})).unwrap();
        let said = limiter(&parameters, &|_| None).await.unwrap_err();
        assert!(said.contains("127.0.0.1:1") && said.contains("the variable THV_SESSION_REDIS_PASSWORD"), "{said}");
    }
}
