//! Buckets of tokens in Redis, in the form that other proxies of the same server know.

use std::fmt;
use std::time::{Duration, Instant};

use redis::aio::ConnectionManager;

use super::Concerned;
use super::breaker::Breaker;
use crate::sessions::Redis;

/// How long Redis may take for one call.
const PATIENCE: Duration = Duration::from_secs(1);

/// Fills each bucket by the time that has passed, and takes from each as many tokens as are asked for; from none when one
/// of them has too few, whose number is the answer. The time is that of the server, so that clocks of proxies do not
/// matter.
const SCRIPT: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local left = {}
for i, key in ipairs(KEYS) do
  local most, period, wanted = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local known = redis.call('HMGET', key, 'tokens', 'last_refill')
  local tokens, last = tonumber(known[1] or nil), tonumber(known[2] or nil)
  if not tokens or not last then
    tokens, last = most, now
  end
  tokens = math.min(most, tokens + math.max(0, now - last) * most / period)
  if tokens < wanted then
    return i
  end
  left[i] = tokens - wanted
end
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 'tokens', string.format('%.17g', left[i]), 'last_refill', string.format('%.0f', now))
  redis.call('EXPIRE', key, math.ceil(2 * tonumber(ARGV[3 * i - 1]) / 1000000))
end
return 0
";

/// Why nothing could be counted.
#[derive(Debug, thiserror::Error)]
pub(super) enum CountError {
    #[error("Redis did not answer in time")]
    TooSlow,
    #[error("Redis did not answer in time just before, and was not asked")]
    Resting,
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
}

impl CountError {
    /// The word for it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::TooSlow | Self::Resting => "timeout",
            Self::Redis(error) if error.is_timeout() => "timeout",
            Self::Redis(error) if error.kind() == redis::ErrorKind::AuthenticationFailed => "auth",
            Self::Redis(error) if error.is_io_error() || error.is_connection_dropped() => "connection",
            Self::Redis(_) => "other",
        }
    }
}

/// All buckets.
pub(super) struct RedisBuckets {
    connection: ConnectionManager,
    breaker: Breaker,
}

impl fmt::Debug for RedisBuckets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RedisBuckets")
    }
}

impl RedisBuckets {
    pub(super) fn new(redis: &Redis) -> Self {
        Self { connection: redis.connection(), breaker: Breaker::default() }
    }

    /// Takes tokens from all of these, or from none; then it says which one has too few.
    pub(super) async fn take<'a>(&self, buckets: &'a [Concerned]) -> Result<Option<&'a Concerned>, CountError> {
        if !self.breaker.may_ask(Instant::now()) {
            return Err(CountError::Resting);
        }
        let taken = self.ask(buckets).await;
        let is_silent = taken.as_ref().is_err_and(|error| error.kind() == "timeout");
        self.breaker.asked(Instant::now(), is_silent);
        taken
    }

    async fn ask<'a>(&self, buckets: &'a [Concerned]) -> Result<Option<&'a Concerned>, CountError> {
        let mut call = redis::cmd("EVAL");
        call.arg(SCRIPT).arg(buckets.len());
        for Concerned { key, .. } in buckets {
            call.arg(key);
        }
        for Concerned { bucket, calls, .. } in buckets {
            let period = u64::try_from(bucket.period.as_micros()).unwrap_or(u64::MAX);
            call.arg(bucket.tokens).arg(period).arg(calls);
        }
        let mut connection = self.connection.clone();
        let asked = tokio::time::timeout(PATIENCE, call.query_async::<usize>(&mut connection)).await;
        let number = asked.map_err(|_| CountError::TooSlow)??;
        Ok(number.checked_sub(1).and_then(|index| buckets.get(index)))
    }
}
