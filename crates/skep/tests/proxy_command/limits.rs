//! Limits of a proxy that somebody runs by themselves, without Redis.

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use super::{ANY, Serving, is_refused, run_in_pod, serve_in_pod};

/// Two calls of a tool in an hour, and the steps as they follow from that.
fn limited() -> Value {
    let bucket = json!({"maxTokens": 2, "refillPeriod": "1h"});
    json!({"rate_limit_config": {"tools": [{"name": "echo", "shared": bucket}]}, "middleware_configs": null})
}

#[test]
fn a_proxy_without_redis_counts_in_its_memory() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let server = Serving::start(&[&ANY[..], &["--", skep, "demo", "echo"]].concat());
    server.call("echo", &json!({"message": "up"}));
    let mut proxy = serve_in_pod(&server.address, &limited(), &[]);
    let (session, arguments) = (proxy.session(), json!({"message": "hi"}));
    let calls = [(); 3].map(|()| proxy.call_in(&session, "echo", &arguments));
    assert_eq!(calls.each_ref().map(|call| call.status), [200, 200, 429]);
    assert_eq!(calls[2].header("retry-after"), Some("1800"));
    assert_eq!(proxy.call_in(&session, "add", &json!({"a": 2, "b": 3})).status, 200, "other tools are not concerned");
    proxy.signal("-TERM");
    assert_eq!(proxy.end(), Some(0));
}

/// There may be others, and each would let a whole limit pass.
#[test]
fn a_proxy_in_a_cluster_does_not_count_alone() {
    let mut config = limited();
    for (name, value) in [("name", "n"), ("transport", "sse"), ("remote_url", "http://127.0.0.1:9/sse")] {
        config[name] = json!(value);
    }
    let refused = run_in_pod(Some(&config.to_string()), &[("TOOLHIVE_RUNTIME", "kubernetes")]);
    is_refused(
        &refused,
        "cannot be used: rate_limit_config: it needs a Redis server to count in; set sessionStorage with provider redis",
    );
}
