//! How often tools may be called: by everybody together and by each user, all of them and single ones.
//!
//! The buckets are in Redis, for all proxies of a server, or in the memory of a proxy that is alone. A call takes a token from
//! each bucket that it concerns, or from none, and so do the calls of a batch together. When Redis cannot be asked, calls
//! pass: a limit is no protection that is worth an outage.

mod breaker;
mod check;
mod memory;
mod redis;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use skep_mcp::{Message, Param, method};

pub(super) use self::check::{Check, Scope, Verdict};
use self::check::{PER_USER, SHARED};
use self::memory::MemoryBuckets;
use self::redis::{CountError, RedisBuckets};
use super::exchange::{Exchange, messages};
use super::layer::{Layer, Next};
use super::refusal::Refusal;
use crate::answer::Answer;
use crate::lapses::Lapses;
use crate::sessions::Redis;

/// A bucket that is full again after a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// How many calls it is good for when it is full.
    pub tokens: u32,
    /// How long it takes from empty to full.
    pub period: Duration,
}

impl Bucket {
    /// How long one token takes, in whole seconds and at least one.
    fn seconds_per_token(self) -> u64 {
        let period = self.period.as_nanos().div_ceil(u128::from(self.tokens.max(1)));
        u64::try_from(period.div_ceil(1_000_000_000)).unwrap_or(u64::MAX).max(1)
    }
}

/// What everybody together may do, and each user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallLimits {
    pub shared: Option<Bucket>,
    pub per_user: Option<Bucket>,
}

/// The limits of one server.
#[derive(Debug, Clone, Default)]
pub struct RateLimits {
    pub namespace: String,
    pub server: String,
    /// For calls of all tools together.
    pub all: CallLimits,
    /// For calls of single tools, by the names that the server knows.
    pub tools: HashMap<String, CallLimits>,
}

/// Why there are no such limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateLimitError {
    /// A bucket that would never be full, or always.
    #[error("{0}: a bucket needs at least one token, and a period above zero")]
    Bucket(String),
}

/// A bucket that calls take tokens from, one each.
#[derive(Debug)]
struct Concerned {
    key: String,
    bucket: Bucket,
    scope: Scope,
    calls: u32,
}

/// Where the buckets are.
#[derive(Debug)]
enum Buckets {
    Redis(RedisBuckets),
    Memory(MemoryBuckets),
}

impl Buckets {
    /// Takes tokens from all of these, or from none; then it says which one has too few.
    async fn take<'a>(&self, buckets: &'a [Concerned]) -> Result<Option<&'a Concerned>, CountError> {
        match self {
            Self::Redis(redis) => redis.take(buckets).await,
            Self::Memory(memory) => Ok(memory.take(buckets, Instant::now())),
        }
    }
}

/// Counts calls.
#[derive(Debug)]
pub struct RateLimit {
    limits: Arc<RateLimits>,
    buckets: Buckets,
    lapses: Lapses,
}

impl RateLimit {
    /// Counts in this Redis, together with every other proxy that does.
    pub fn in_redis(limits: RateLimits, redis: &Redis) -> Result<Self, RateLimitError> {
        Self::new(limits, Buckets::Redis(RedisBuckets::new(redis)))
    }

    /// Counts in the memory of this process. Another proxy of the same server would count for itself, and whoever starts anew
    /// finds all buckets full.
    pub fn in_memory(limits: RateLimits) -> Result<Self, RateLimitError> {
        Self::new(limits, Buckets::Memory(MemoryBuckets::default()))
    }

    fn new(limits: RateLimits, buckets: Buckets) -> Result<Self, RateLimitError> {
        let tools = limits.tools.iter().map(|(tool, limits)| (tool.as_str(), limits));
        for (whose, limits) in std::iter::once(("the server", &limits.all)).chain(tools) {
            let mut all = [limits.shared, limits.per_user].into_iter().flatten();
            if all.any(|bucket| bucket.tokens == 0 || bucket.period.is_zero()) {
                return Err(RateLimitError::Bucket(whose.to_owned()));
            }
        }
        Ok(Self { limits: Arc::new(limits), buckets, lapses: Lapses::default() })
    }

    /// The buckets that a call of a tool by somebody concerns, with their keys, in the order in which they are asked.
    fn concerned(&self, tool: &str, user: &str) -> Vec<Concerned> {
        let prefix = format!("thv:rl:{{{}:{}}}", self.limits.namespace, self.limits.server);
        let of_tool = self.limits.tools.get(tool).copied().unwrap_or_default();
        let of_user = |bucket: Option<Bucket>| bucket.filter(|_| !user.is_empty());
        let buckets = [
            (format!("{prefix}:shared"), self.limits.all.shared, Scope::new(SHARED, "server")),
            (format!("{prefix}:shared:tool:{tool}"), of_tool.shared, Scope::new(SHARED, "tool")),
            (format!("{prefix}:user:{user}"), of_user(self.limits.all.per_user), Scope::new(PER_USER, "server")),
            (format!("{prefix}:user-tool:{tool}:{user}"), of_user(of_tool.per_user), Scope::new(PER_USER, "tool")),
        ];
        let buckets = buckets.into_iter();
        buckets.filter_map(|(key, bucket, scope)| Some(Concerned { key, bucket: bucket?, scope, calls: 1 })).collect()
    }

    async fn check(&self, exchange: &mut Exchange<'_>) -> Result<(), Answer> {
        exchange.receive().await?;
        exchange.judged()?;
        let Some(payload) = exchange.known() else { return Ok(()) };
        let user = exchange.notes().identity().map(|identity| identity.subject.clone()).unwrap_or_default();
        let calls = messages(payload).filter(|message| message.method() == method::TOOLS_CALL);
        let concerned: Vec<(&Message, Vec<Concerned>)> = calls
            .map(|call| (call, self.concerned(&call.param_text(Param::Name).unwrap_or_default(), &user)))
            .filter(|(_, concerned)| !concerned.is_empty())
            .collect();
        if concerned.is_empty() {
            return Ok(());
        }
        let all = together(concerned.iter().flat_map(|(_, concerned)| concerned));
        let began = Instant::now();
        let taken = self.buckets.take(&all).await;
        let took = began.elapsed();
        for (_, concerned) in &concerned {
            let verdict = match &taken {
                Ok(None) => Verdict::Allowed(concerned.iter().map(|concerned| concerned.scope).collect()),
                Ok(Some(empty)) => Verdict::Rejected(empty.scope),
                Err(error) => Verdict::Unknown(error.kind()),
            };
            exchange.notes().checked(Check { limits: Arc::clone(&self.limits), took, verdict });
        }
        if taken.is_ok() && self.lapses.is_over() {
            tracing::info!("limits can be asked for again");
        }
        match taken {
            Ok(None) => Ok(()),
            Ok(Some(empty)) => {
                tracing::debug!(bucket = empty.key, "a call is over its limit");
                let over = concerned.iter().find(|(_, concerned)| concerned.iter().any(|it| it.key == empty.key));
                let id = over.and_then(|(call, _)| call.owned_id());
                let refusal = Refusal::RateLimited { seconds: empty.bucket.seconds_per_token() };
                Err(refusal.answer(id.as_ref()))
            }
            Err(error) => {
                if let Some(times) = self.lapses.failed() {
                    tracing::warn!(%error, times, "limits cannot be asked for, and calls pass");
                }
                Ok(())
            }
        }
    }
}

/// The buckets of all calls, each one once: a batch takes all that it needs, or nothing.
fn together<'a>(concerned: impl IntoIterator<Item = &'a Concerned>) -> Vec<Concerned> {
    let mut all: Vec<Concerned> = Vec::new();
    for Concerned { key, bucket, scope, calls } in concerned {
        match all.iter_mut().find(|known| known.key == *key) {
            Some(known) => known.calls += calls,
            None => all.push(Concerned { key: key.clone(), bucket: *bucket, scope: *scope, calls: *calls }),
        }
    }
    all
}

impl Layer for RateLimit {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        async move {
            match self.check(&mut exchange).await {
                Ok(()) => next.pass(exchange).await,
                Err(refusal) => refusal,
            }
        }
        .boxed()
    }
}
