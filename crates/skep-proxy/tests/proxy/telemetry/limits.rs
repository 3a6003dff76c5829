//! What limits have said, counted and told.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::json;
use skep_conformance::redis::RedisServer;
use skep_proxy::Redis;
use skep_proxy::middleware::{Bucket, CallLimits, RateLimit, RateLimits, Step, TelemetrySettings};

use super::{collector, prometheus, proxy, settings, taking, told, tools};
use crate::http::{Request, call};
use crate::readers::{Reader, sample};
use crate::transparent::server::Server;

#[tokio::test]
async fn trap_54_every_bucket_and_every_failure_of_redis_is_counted() {
    let test = "trap_54_every_bucket_and_every_failure_of_redis_is_counted";
    let Some(mut redis) = RedisServer::start(test) else { return };
    let Some(reader) = Reader::get(test) else { return };
    let bucket = |tokens| Some(Bucket { tokens, period: Duration::from_hours(24 * 365) });
    let limits = RateLimits {
        namespace: "apiary".to_owned(),
        server: "hive".to_owned(),
        all: CallLimits { shared: bucket(5), per_user: None },
        tools: HashMap::from([("feed".to_owned(), CallLimits { shared: None, per_user: bucket(1) })]),
    };
    let connected = Redis::connect(&crate::redis::settings(&redis)).await.unwrap();
    let limit = Step::LimitRates(RateLimit::in_redis(limits, &connected).unwrap());
    let (server, receiver) = (Server::start(tools).await, taking().await);
    let telling = TelemetrySettings {
        collector: Some(collector(&receiver.address)),
        prometheus: Some(prometheus()),
        ..settings()
    };
    let mut before = proxy(&server, telling, vec![limit]).await;
    for (tool, status) in [("feed", 200), ("feed", 429), ("weigh_hive", 200)] {
        assert_eq!(before.send(Request::post(&call(1, tool))).await.status, status);
    }
    redis.kill();
    assert_eq!(before.send(Request::post(&call(1, "secret"))).await.status, 200);
    let page = reader.page(&before.send(Request::new("GET", "/metrics")).await.text().await);
    let decisions = |decision: &str, scope: &str, operation: &str| {
        let labels = [
            ("namespace", "apiary"),
            ("server", "hive"),
            ("decision", decision),
            ("scope", scope),
            ("operation_type", operation),
        ];
        sample(&page, "toolhive_rate_limit_decisions_total", &labels)
    };
    assert_eq!(decisions("allowed", "shared", "server"), 2);
    assert_eq!(decisions("allowed", "per_user", "tool"), 1);
    assert_eq!(decisions("rejected", "per_user", "tool"), 1);
    let owner = [("namespace", "apiary"), ("server", "hive")];
    assert_eq!(sample(&page, "toolhive_rate_limit_fail_open_total", &owner), 1);
    assert_eq!(sample(&page, "toolhive_rate_limit_redis_errors_total", &owner), 1);
    assert_eq!(sample(&page, "toolhive_rate_limit_check_latency_seconds_count", &owner), 4);
    before.stop().await;
    let spans = reader.spans(told(&receiver.seen(), "traces"));
    let of = |name: &str, status: u16| {
        let is = |span: &&serde_json::Value| {
            span["name"] == name && span["attributes"]["http.response.status_code"] == status
        };
        let told = spans.iter().find(is).unwrap()["attributes"].clone();
        ["decision", "rejected_by", "fail_open"].map(|part| told[format!("rate_limit.{part}")].clone())
    };
    assert_eq!(of("tools/call feed", 200), [json!("allowed"), json!("none"), json!(false)]);
    assert_eq!(of("tools/call feed", 429), [json!("rejected"), json!("per_user_tool"), json!(false)]);
    assert_eq!(of("tools/call secret", 200), [json!("allowed"), json!("none"), json!(true)]);
}
