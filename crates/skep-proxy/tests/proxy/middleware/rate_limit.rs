//! Calls that are counted in a real Redis, and by a proxy alone.

use std::collections::HashMap;
use std::time::Duration;

use redis::Commands as _;
use serde_json::json;
use skep_conformance::redis::{PASSWORD, RedisServer};
use skep_proxy::middleware::{Audit, Authentication, Bucket, CallLimits, RateLimit, RateLimits, Step};
use skep_proxy::{Redis, RedisSettings};

use super::{Guarded, audit, with_tools};
use crate::authz::has_burnt;
use crate::authz::tricks::{WRITTEN, raw};
use crate::http::{PATIENCE, Request, call, request};
use crate::redis::{look, settings};

/// A bucket that does not fill while a test runs.
fn bucket(tokens: u32) -> Bucket {
    Bucket { tokens, period: Duration::from_hours(24 * 365) }
}

fn limits(all: CallLimits, feed: CallLimits) -> RateLimits {
    let tools: HashMap<String, CallLimits> = [("feed".to_owned(), feed)].into();
    RateLimits { namespace: "apiary".to_owned(), server: "hive".to_owned(), all, tools }
}

async fn guarded(redis: &RedisServer, limits: RateLimits) -> Guarded {
    let connected = Redis::connect(&settings(redis)).await.unwrap();
    limited(RateLimit::in_redis(limits, &connected).unwrap()).await
}

async fn limited(limit: RateLimit) -> Guarded {
    Guarded::new(vec![Step::Authenticate(Authentication::Anonymous), Step::LimitRates(limit)], with_tools).await
}

/// Two calls pass and no more, whatever else does.
async fn refuses_the_third(guarded: &Guarded) {
    for _ in 0..2 {
        assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200);
    }
    let mut refused = guarded.send(Request::post(&call("x", "feed"))).await;
    let seconds = 24 * 3600 * 365 / 2;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some(seconds.to_string().as_str())));
    let error = json!({"code": 429, "message": "Rate limit exceeded", "data": {"retryAfterSeconds": seconds}});
    assert_eq!(refused.json().await, json!({"jsonrpc": "2.0", "id": "x", "error": error}));
    assert_eq!(guarded.send(Request::post(&request(2, "tools/list", &json!({})))).await.status, 200);
    let silent = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "feed"}});
    assert_eq!(guarded.send(Request::post(&silent)).await.status, 429);
}

#[tokio::test]
async fn a_call_too_many_is_refused_with_the_time_to_wait() {
    let Some(redis) = RedisServer::start("a_call_too_many_is_refused_with_the_time_to_wait") else { return };
    let shared = CallLimits { shared: Some(bucket(2)), per_user: None };
    refuses_the_third(&guarded(&redis, limits(shared, CallLimits::default())).await).await;
    let key = "thv:rl:{apiary:hive}:shared";
    let mut looking = look(&redis);
    assert_eq!(looking.keys::<_, Vec<String>>("*").unwrap(), [key]);
    assert!((0.0..1.0).contains(&looking.hget::<_, _, f64>(key, "tokens").unwrap()));
    let filled: u64 = looking.hget(key, "last_refill").unwrap();
    assert!(filled > 1_700_000_000_000_000, "microseconds: {filled}");
    assert!(looking.ttl::<_, i64>(key).unwrap() > 24 * 3600 * 365);
}

#[tokio::test]
async fn a_proxy_that_counts_alone_refuses_in_the_same_words() {
    let none = CallLimits::default();
    let (shared, of_each) = (Some(bucket(2)), Some(bucket(2)));
    for limits in [
        limits(CallLimits { shared, per_user: None }, none),
        limits(CallLimits { shared: None, per_user: of_each }, none),
        limits(none, CallLimits { shared, per_user: None }),
        limits(none, CallLimits { shared: Some(bucket(9)), per_user: of_each }),
    ] {
        refuses_the_third(&limited(RateLimit::in_memory(limits).unwrap()).await).await;
    }
}

/// A part of a cluster that has all keys, so that nothing is wrong with it but what the rules of clusters forbid.
async fn clustered(test: &str) -> Option<RedisServer> {
    let redis = RedisServer::start_clustered(test)?;
    let info = redis::IntoConnectionInfo::into_connection_info(format!("redis://{}", redis.address())).unwrap();
    let mut asking = redis::Client::open(info).unwrap().get_connection().unwrap();
    let () = redis::cmd("AUTH").arg(PASSWORD).query(&mut asking).unwrap();
    let () = redis::cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16_383).query(&mut asking).unwrap();
    let waiting = async {
        loop {
            let info: String = redis::cmd("CLUSTER").arg("INFO").query(&mut asking).unwrap();
            if info.contains("cluster_state:ok") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    Some(redis)
}

#[tokio::test]
async fn auth_trap_81_all_buckets_of_a_call_are_in_one_slot_of_a_cluster() {
    let Some(redis) = clustered("auth_trap_81_all_buckets_of_a_call_are_in_one_slot_of_a_cluster").await else {
        return;
    };
    let both = |tokens| CallLimits { shared: Some(bucket(tokens)), per_user: Some(bucket(tokens)) };
    // A name that would choose the slot, if it were the first in braces.
    let tools = [("{feed}".to_owned(), both(2))].into();
    let limits = RateLimits { tools, ..limits(both(9), CallLimits::default()) };
    let connected = Redis::connect(&RedisSettings { database: 0, ..settings(&redis) }).await.unwrap();
    let guarded = limited(RateLimit::in_redis(limits, &connected).unwrap()).await;
    // When Redis refuses the question, calls pass.
    let mut met = Vec::new();
    for _ in 0..3 {
        met.push(guarded.send(Request::post(&call(1, "{feed}"))).await.status);
    }
    assert_eq!(met, [200, 200, 429]);
}

#[tokio::test]
async fn trap_54_who_is_refused_takes_nothing_from_others() {
    let Some(mut redis) = RedisServer::start("trap_54_who_is_refused_takes_nothing_from_others") else { return };
    let all = CallLimits { shared: Some(bucket(5)), per_user: None };
    let feed = CallLimits { shared: Some(bucket(4)), per_user: Some(bucket(1)) };
    let guarded = guarded(&redis, limits(all, feed)).await;
    assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200);
    for _ in 0..5 {
        assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 429);
    }
    let mut looking = look(&redis);
    let mut left = |key: &str| {
        let tokens: f64 = looking.hget(format!("thv:rl:{{apiary:hive}}:{key}"), "tokens").unwrap();
        format!("{tokens:.1}")
    };
    assert_eq!((left("shared"), left("shared:tool:feed")), ("4.0".to_owned(), "3.0".to_owned()));
    assert_eq!(left("user-tool:feed:anonymous"), "0.0");
    assert_eq!(guarded.send(Request::post(&call(1, "weigh_hive"))).await.status, 200, "other tools are not concerned");
    redis.kill();
    assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200, "without Redis nobody is refused");
}

#[tokio::test]
async fn trap_56_a_call_too_many_is_recorded_with_who_made_it() {
    let Some(redis) = RedisServer::start("trap_56_a_call_too_many_is_recorded_with_who_made_it") else { return };
    let folder = tempfile::tempdir().unwrap();
    let connected = Redis::connect(&settings(&redis)).await.unwrap();
    let shared = CallLimits { shared: Some(bucket(1)), per_user: None };
    let steps = vec![
        Step::Audit(Audit::new(audit::settings(&folder)).unwrap()),
        Step::Authenticate(Authentication::Anonymous),
        Step::LimitRates(RateLimit::in_redis(limits(shared, CallLimits::default()), &connected).unwrap()),
    ];
    let guarded = Guarded::new(steps, with_tools).await;
    for status in [200, 429] {
        let mut answer = guarded.send(Request::post(&call(1, "feed"))).await;
        answer.text().await;
        assert_eq!(answer.status, status);
    }
    let records = audit::records(&folder, 2).await;
    assert_eq!((&records[0]["outcome"], &records[1]["outcome"]), (&json!("success"), &json!("failure")));
    assert_eq!(records[1]["subjects"]["user_id"], "anonymous");
    assert_eq!(records[1]["target"]["name"], "feed");
}

#[tokio::test]
async fn trap_47_no_way_to_write_a_call_evades_its_limit() {
    let Some(redis) = RedisServer::start("trap_47_no_way_to_write_a_call_evades_its_limit") else { return };
    let connected = Redis::connect(&settings(&redis)).await.unwrap();
    let none_left = CallLimits { shared: Some(bucket(1)), per_user: None };
    let limits = RateLimits {
        tools: [("burn".to_owned(), none_left)].into(),
        ..limits(CallLimits::default(), CallLimits::default())
    };
    let limit = RateLimit::in_redis(limits, &connected).unwrap();
    let steps = vec![Step::Authenticate(Authentication::Anonymous), Step::LimitRates(limit)];
    let guarded = Guarded::new(steps, with_tools).await;
    assert_eq!(guarded.send(Request::post(&call(1, "burn"))).await.status, 200);
    guarded.server.seen();
    for (trick, text) in WRITTEN {
        let mut refused = guarded.send(raw(text)).await;
        let told = refused.text().await;
        let (seen, is_another_tool) = (guarded.server.seen(), text.contains("weigh\\u0000burn"));
        assert!(is_another_tool || !has_burnt(&seen), "{trick}: {} {told}", refused.status);
    }
}

#[tokio::test]
async fn the_calls_of_a_batch_take_their_tokens_together_or_not_at_all() {
    let Some(redis) = RedisServer::start("the_calls_of_a_batch_take_their_tokens_together_or_not_at_all") else {
        return;
    };
    let all = CallLimits { shared: Some(bucket(10)), per_user: None };
    let feed = CallLimits { shared: Some(bucket(3)), per_user: None };
    let guarded = guarded(&redis, limits(all, feed)).await;
    let mut looking = look(&redis);
    let mut left = |key: &str| {
        let tokens: f64 = looking.hget(format!("thv:rl:{{apiary:hive}}:{key}"), "tokens").unwrap();
        format!("{tokens:.1}")
    };
    let batch = |feeds: u64| {
        let calls: Vec<_> = (0..feeds).map(|id| call(id, "feed")).chain([call("w", "weigh_hive")]).collect();
        guarded.send(Request::post(&json!(calls)))
    };
    assert_eq!(batch(2).await.status, 200);
    assert_eq!((left("shared"), left("shared:tool:feed")), ("7.0".to_owned(), "1.0".to_owned()));
    let mut refused = batch(2).await;
    assert_eq!((refused.status, refused.json().await["id"].clone()), (429, json!(0)));
    assert_eq!((left("shared"), left("shared:tool:feed")), ("7.0".to_owned(), "1.0".to_owned()));
    assert_eq!(batch(1).await.status, 200);
    assert_eq!((left("shared"), left("shared:tool:feed")), ("5.0".to_owned(), "0.0".to_owned()));
}

#[tokio::test]
async fn a_redis_that_is_silent_is_not_waited_for_again_and_again() {
    let Some(redis) = RedisServer::start("a_redis_that_is_silent_is_not_waited_for_again_and_again") else { return };
    let all = CallLimits { shared: Some(bucket(1000)), per_user: None };
    let guarded = guarded(&redis, limits(all, CallLimits::default())).await;
    let mut looking = look(&redis);
    let _: () = redis::cmd("CLIENT").arg("PAUSE").arg(600_000).arg("WRITE").query(&mut looking).unwrap();
    for _ in 0..100 {
        assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200);
    }
    let _: () = redis::cmd("CLIENT").arg("UNPAUSE").query(&mut looking).unwrap();
    // Questions that it was asked meanwhile are answered now, if nobody waits for them either.
    let told: String = redis::cmd("INFO").arg("commandstats").query(&mut looking).unwrap();
    let asked = told.lines().find_map(|line| line.strip_prefix("cmdstat_eval:calls=")?.split(',').next());
    let asked: u64 = asked.map_or(0, |asked| asked.parse().unwrap());
    assert!(asked < 50, "{asked} of 100 calls waited: {told}");
}

#[tokio::test]
async fn trap_54_a_bucket_fills_again_however_slowly() {
    let Some(redis) = RedisServer::start("trap_54_a_bucket_fills_again_however_slowly") else { return };
    let slow = Bucket { tokens: 1, period: Duration::from_hours(24 * 100) };
    let all = CallLimits { shared: Some(slow), per_user: None };
    let guarded = guarded(&redis, limits(all, CallLimits::default())).await;
    assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200);
    assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 429);
    // As if it had been filled last a hundred days and a little ago.
    let (mut looking, key) = (look(&redis), "thv:rl:{apiary:hive}:shared");
    let filled: u64 = looking.hget(key, "last_refill").unwrap();
    let ago = u64::try_from(slow.period.as_micros()).unwrap();
    let _: () = looking.hset(key, "last_refill", filled - ago - 1).unwrap();
    assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 200);
    assert_eq!(guarded.send(Request::post(&call(1, "feed"))).await.status, 429);
}

#[tokio::test]
async fn a_bucket_that_makes_no_sense_is_named() {
    let Some(redis) = RedisServer::start("a_bucket_that_makes_no_sense_is_named") else { return };
    let connected = Redis::connect(&settings(&redis)).await.unwrap();
    for wrong in [Bucket { tokens: 0, period: Duration::from_secs(1) }, Bucket { tokens: 1, period: Duration::ZERO }] {
        let feed = CallLimits { shared: None, per_user: Some(wrong) };
        let refused = RateLimit::in_redis(limits(CallLimits::default(), feed), &connected).unwrap_err().to_string();
        assert!(refused.starts_with("feed: "), "{refused}");
    }
}
