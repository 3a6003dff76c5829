//! Buckets in memory and in a real Redis, which have to say the same.

use std::cell::Cell;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use skep_conformance::redis::{PASSWORD, RedisServer};

use super::*;
use crate::sessions::RedisSettings;

#[test]
fn a_token_takes_its_part_of_the_period() {
    for (tokens, seconds, expected) in [(10, 60, 6), (100, 60, 1), (7, 60, 9), (1, 86_400, 86_400), (1, 0, 1)] {
        let bucket = Bucket { tokens, period: Duration::from_secs(seconds) };
        assert_eq!(bucket.seconds_per_token(), expected, "{tokens} in {seconds} s");
    }
}

/// As if so many microseconds more had passed since every bucket of a server was filled.
const AGE: &str = r"
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  redis.call('HINCRBY', key, 'last_refill', ARGV[2])
end";

/// Periods in days: long enough that the time which a test really takes makes no difference.
const DAYS: std::ops::Range<u64> = 100..1000;
const MICROSECONDS_PER_DAY: u64 = 24 * 3600 * 1_000_000;

/// Somebody calls tools, after a pause in microseconds: none, or any up to the longest time that a bucket takes to fill.
#[derive(Debug, Clone)]
struct Step {
    pause: u64,
    user: &'static str,
    tools: Vec<&'static str>,
}

fn bucket() -> impl Strategy<Value = Option<Bucket>> {
    let bucket = (1..6_u32, DAYS).prop_map(|(tokens, days)| Bucket { tokens, period: Duration::from_hours(24 * days) });
    proptest::option::weighted(0.7, bucket)
}

fn call_limits() -> impl Strategy<Value = CallLimits> {
    (bucket(), bucket()).prop_map(|(shared, per_user)| CallLimits { shared, per_user })
}

fn step() -> impl Strategy<Value = Step> {
    let pause = prop_oneof![Just(0), 0..DAYS.end * MICROSECONDS_PER_DAY];
    let user = prop::sample::select(vec!["ann", "bob", "a:{b}", ""]);
    // Several are a batch.
    let tools = vec(prop::sample::select(vec!["feed", "weigh", "look"]), 1..4);
    (pause, user, tools).prop_map(|(pause, user, tools)| Step { pause, user, tools })
}

/// What a sequence of calls meets in Redis and in memory: the keys of the buckets that refuse them.
async fn refusals(limits: RateLimits, redis: &Redis, steps: &[Step]) -> (Vec<Option<String>>, Vec<Option<String>>) {
    let (limit, in_redis, in_memory) =
        (RateLimit::in_memory(limits).unwrap(), RedisBuckets::new(redis), MemoryBuckets::default());
    let server = format!("thv:rl:{{{}:{}}}", limit.limits.namespace, limit.limits.server);
    let mut connection = redis.connection();
    let mut passed = Duration::ZERO;
    let (mut said_by_redis, mut said_by_memory) = (Vec::new(), Vec::new());
    for Step { pause, user, tools } in steps {
        passed += Duration::from_micros(*pause);
        let mut aging = ::redis::cmd("EVAL");
        aging.arg(AGE).arg(0).arg(&server).arg(-i64::try_from(*pause).unwrap());
        aging.exec_async(&mut connection).await.unwrap();
        let all = together(&tools.iter().flat_map(|tool| limit.concerned(tool, user)).collect::<Vec<_>>());
        if all.is_empty() {
            continue;
        }
        said_by_redis.push(in_redis.take(&all).await.unwrap().map(|empty| empty.key.clone()));
        said_by_memory.push(in_memory.take(&all, Instant::now() + passed).map(|empty| empty.key.clone()));
    }
    (said_by_redis, said_by_memory)
}

#[test]
fn memory_and_redis_say_the_same() {
    let Some(server) = RedisServer::start("memory_and_redis_say_the_same") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let settings = RedisSettings { password: Some(PASSWORD.to_owned()), ..RedisSettings::new(&server.address()) };
    let redis = runtime.block_on(Redis::connect(&settings)).unwrap();
    let (number, refused, allowed) = (Cell::new(0), Cell::new(0), Cell::new(0));
    proptest!(ProptestConfig::with_cases(48), |(all in call_limits(), feed in call_limits(), steps in vec(step(), 1..30))| {
        // Each case has buckets of its own.
        number.set(number.get() + 1);
        let limits = RateLimits {
            namespace: "apiary".to_owned(),
            server: number.get().to_string(),
            all,
            tools: [("feed".to_owned(), feed)].into(),
        };
        let (in_redis, in_memory) = runtime.block_on(refusals(limits, &redis, &steps));
        prop_assert_eq!(&in_redis, &in_memory);
        let no = in_redis.iter().flatten().count();
        refused.set(refused.get() + no);
        allowed.set(allowed.get() + in_redis.len() - no);
    });
    assert!(refused.get() > 50 && allowed.get() > 50, "{} refused, {} allowed", refused.get(), allowed.get());
}
