//! Buckets of tokens in Redis, in the form that other proxies of the same server know.

use std::fmt;
use std::time::Duration;

use redis::aio::ConnectionManager;

use super::Concerned;
use crate::sessions::Redis;

/// How long Redis may take for one call.
const PATIENCE: Duration = Duration::from_secs(1);

/// Fills each bucket by the time that has passed, and takes a token from each; from none when one of them is empty, whose
/// number is the answer. The time is that of the server, so that clocks of proxies do not matter.
const SCRIPT: &str = r"
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local left = {}
for i, key in ipairs(KEYS) do
  local most, period = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local known = redis.call('HMGET', key, 'tokens', 'last_refill')
  local tokens, last = tonumber(known[1] or nil), tonumber(known[2] or nil)
  if not tokens or not last then
    tokens, last = most, now
  end
  tokens = math.min(most, tokens + math.max(0, now - last) * most / period)
  if tokens < 1 then
    return i
  end
  left[i] = tokens - 1
end
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 'tokens', string.format('%.17g', left[i]), 'last_refill', string.format('%.0f', now))
  redis.call('EXPIRE', key, math.ceil(2 * tonumber(ARGV[2 * i]) / 1000000))
end
return 0
";

/// Why nothing could be counted.
#[derive(Debug, thiserror::Error)]
pub(super) enum CountError {
    #[error("Redis did not answer in time")]
    TooSlow,
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
}

impl CountError {
    /// The word for it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::TooSlow => "timeout",
            Self::Redis(error) if error.is_timeout() => "timeout",
            Self::Redis(error) if error.kind() == redis::ErrorKind::AuthenticationFailed => "auth",
            Self::Redis(error) if error.is_io_error() || error.is_connection_dropped() => "connection",
            Self::Redis(_) => "other",
        }
    }
}

/// All buckets.
pub(super) struct Buckets(ConnectionManager);

impl fmt::Debug for Buckets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Buckets")
    }
}

impl Buckets {
    pub(super) fn new(redis: &Redis) -> Self {
        Self(redis.connection())
    }

    /// Takes a token from each of these, or from none; then it says which one is empty.
    pub(super) async fn take<'a>(&self, buckets: &'a [Concerned]) -> Result<Option<&'a Concerned>, CountError> {
        let mut call = redis::cmd("EVAL");
        call.arg(SCRIPT).arg(buckets.len());
        for Concerned { key, .. } in buckets {
            call.arg(key);
        }
        for Concerned { bucket, .. } in buckets {
            let period = u64::try_from(bucket.period.as_micros()).unwrap_or(u64::MAX);
            call.arg(bucket.tokens).arg(period);
        }
        let mut connection = self.0.clone();
        let asked = tokio::time::timeout(PATIENCE, call.query_async::<usize>(&mut connection)).await;
        let number = asked.map_err(|_| CountError::TooSlow)??;
        Ok(number.checked_sub(1).and_then(|index| buckets.get(index)))
    }
}
