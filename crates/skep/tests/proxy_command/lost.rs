//! With which code a proxy ends whose server does not answer any more, where there is no cluster.

use serde_json::json;
use snapbox::cmd::cargo_bin;

use super::{ANY, Serving, serve_in_pod};

/// A server that is given up within a second.
const IMPATIENT: [(&str, &str); 4] = [
    ("TOOLHIVE_REMOTE_HEALTHCHECKS", "1"),
    ("TOOLHIVE_HEALTH_CHECK_INTERVAL", "50ms"),
    ("TOOLHIVE_HEALTH_CHECK_RETRY_DELAY", "50ms"),
    ("TOOLHIVE_HEALTH_CHECK_FAILURE_THRESHOLD", "2"),
];

/// A server at an address that has answered once.
fn server() -> Serving {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let lines = Serving::start(&[&ANY[..], &["--", skep, "demo", "echo"]].concat());
    lines.call("echo", &json!({"message": "up"}));
    lines
}

// There is no StatefulSet of it that somebody could still want: the pod is not blamed for what is elsewhere.
#[test]
fn trap_59_a_proxy_in_a_pod_that_has_lost_a_remote_server_ends_with_zero() {
    let server = server();
    let mut proxy = serve_in_pod(&server.address, &json!({}), &IMPATIENT);
    proxy.call("echo", &json!({"message": "hi"}));
    drop(server);
    assert_eq!(proxy.end(), Some(0));
}

#[test]
fn a_proxy_that_somebody_started_and_that_has_lost_its_server_ends_with_one() {
    let server = server();
    let url = format!("http://{}/mcp", server.address);
    let mut proxy = Serving::start_with(&[&ANY[..], &["--url", &url]].concat(), &IMPATIENT);
    proxy.call("echo", &json!({"message": "hi"}));
    drop(server);
    assert_eq!(proxy.end(), Some(1));
}
