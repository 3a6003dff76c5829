//! Sessions in a real Redis, as the flags and the RunConfig ask for it.

use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use skep_conformance::redis::{PASSWORD, RedisServer};
use snapbox::cmd::cargo_bin;

use super::http::Response;
use super::{ANY, LIMIT, Serving, serve_in_pod};

const VARIABLE: &str = "THV_SESSION_REDIS_PASSWORD";

fn said(mut response: Response) -> Value {
    assert_eq!(response.status, 200);
    let answer = if response.is_stream() { response.message().unwrap() } else { response.json() };
    answer["result"]["content"][0]["text"].clone()
}

#[test]
fn a_session_that_began_at_one_proxy_goes_on_at_another_and_outlives_redis() {
    let test = "a_session_that_began_at_one_proxy_goes_on_at_another_and_outlives_redis";
    let Some(mut redis) = RedisServer::start(test) else { return };
    let server = Serving::start(&["demo", "echo", "--transport", "streamable-http", "--port", "0"]);
    let url = format!("http://{}/mcp", server.address);
    let address = redis.address();
    let at_redis = ["--redis", &address, "--redis-db", "2", "--redis-key-prefix", "test:"];
    let flags = [&ANY[..], &at_redis, &["--url", &url]].concat();
    let first = Serving::start_with(&flags, &[(VARIABLE, PASSWORD)]);
    let scaling = json!({"session_redis": {"address": address, "db": 2, "key_prefix": "test:"}});
    let second = serve_in_pod(&server.address, &json!({"scaling_config": scaling}), &[(VARIABLE, PASSWORD)]);

    let session = first.session();
    // The other one may have just begun to listen, and has to have found the server.
    second.session();
    let arguments = json!({"message": "here"});
    assert_eq!(said(second.call_in(&session, "echo", &arguments)), "here");
    redis.kill();
    let mut refused = second.call_in(&session, "echo", &arguments);
    assert_eq!((refused.status, refused.text().trim()), (503, "session store unavailable"));
    redis.resume().unwrap();
    let begun = Instant::now();
    let answer = loop {
        let response = first.call_in(&session, "echo", &arguments);
        if response.status == 200 {
            break said(response);
        }
        assert!(response.status == 503 && begun.elapsed() < LIMIT, "{}", response.status);
    };
    assert_eq!(answer, "here");
    // One that keeps its sessions to itself knows nothing of it.
    let alone = Serving::start(&[&ANY[..], &["--url", &url]].concat());
    let begun = Instant::now();
    let status = loop {
        let status = alone.call_in(&session, "echo", &arguments).status;
        // It has not found the server yet.
        if status != 503 || begun.elapsed() > LIMIT {
            break status;
        }
    };
    assert_eq!(status, 404);
}

#[test]
fn sessions_of_a_process_outlive_the_proxy() {
    let Some(redis) = RedisServer::start("sessions_of_a_process_outlive_the_proxy") else { return };
    let (skep, address) = (cargo_bin!("skep").to_str().unwrap(), redis.address());
    let flags = [&ANY[..], &["--redis", &address, "--", skep, "demo", "echo", "--transport", "stdio"]].concat();
    let first = Serving::start_with(&flags, &[(VARIABLE, PASSWORD)]);
    let session = first.session();
    drop(first);
    let second = Serving::start_with(&flags, &[(VARIABLE, PASSWORD)]);
    let begun = Instant::now();
    loop {
        let response = second.call_in(&session, "echo", &json!({"message": "still"}));
        if response.status == 200 {
            break assert_eq!(said(response), "still");
        }
        assert!(response.status == 503 && begun.elapsed() < LIMIT, "{}", response.status);
    }
}

#[test]
fn a_redis_that_cannot_be_used_is_told_at_once() {
    let Some(redis) = RedisServer::start("a_redis_that_cannot_be_used_is_told_at_once") else { return };
    let address = redis.address();
    for (flags, password, told) in [
        (&["--redis", &address, "--redis-key-prefix", "x"][..], PASSWORD, "\"x\" does not end with a colon"),
        (&["--redis", &address], "wrong words", "cannot use Redis at"),
        (&["--redis", "127.0.0.1:1"], PASSWORD, "cannot use Redis at 127.0.0.1:1"),
    ] {
        let mut command = Command::new(cargo_bin!("skep"));
        command.args(ANY).args(flags).args(["--url", "http://127.0.0.1:9/mcp"]).env(VARIABLE, password);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(told) && said.contains("hint: ") && !said.contains(password), "{said}");
    }
}
