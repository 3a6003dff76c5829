//! What somebody may say about eras, by flags and by variables.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use super::http::Request;
use super::{ANY, LIMIT, Serving, is_refused, run_in_pod, serve_in_pod};

fn era(proxy: &Serving) -> Value {
    Request::new("GET", "/health").send(&proxy.address).json()["era"]["verdict"].clone()
}

/// The same of a proxy that may still be about to begin.
fn soon(proxy: &Serving) -> Value {
    let begun = Instant::now();
    while era(proxy) == Value::Null && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    era(proxy)
}

#[test]
fn the_era_of_a_server_is_what_a_flag_or_a_variable_says() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let command = ["--", skep, "demo", "echo"];
    let unknown = Serving::start(&[&ANY[..], &command].concat());
    assert_eq!(era(&unknown), Value::Null, "nobody has asked it");
    let named = Serving::start(&[&ANY[..], &["--backend-era", "modern"], &command].concat());
    assert_eq!(era(&named), "modern");
    let url = format!("http://{}/mcp", unknown.address);
    let variable = [("SKEP_BACKEND_ERA", "legacy")];
    let remote = Serving::start_with(&[&ANY[..], &["--url", &url]].concat(), &variable);
    assert_eq!(era(&remote), "legacy");
    let flags = ["--backend-era", "modern", "--parked-calls", "off", "--backend-sessions", "per-request"];
    let more = ["--backend-session-idle", "90s", "--url", &url];
    let remote = Serving::start_with(&[&ANY[..], &flags, &more].concat(), &variable);
    assert_eq!(era(&remote), "modern", "flags count for more");
    let pod = serve_in_pod(&unknown.address, &json!({}), &variable);
    assert_eq!(soon(&pod), "legacy");
}

#[test]
fn what_cannot_be_is_refused_at_the_start() {
    let remote = json!({"name": "n", "transport": "sse", "remote_url": "http://127.0.0.1:9/sse"}).to_string();
    let refused = run_in_pod(Some(&remote), &[("SKEP_BACKEND_ERA", "newest")]);
    for told in ["SKEP_BACKEND_ERA: ", "newest", " is none of auto, legacy, modern"] {
        is_refused(&refused, told);
    }
    let skep = cargo_bin!("skep").to_str().unwrap();
    let run = |flags: &[&str]| Command::new(skep).args(ANY).args(flags).output().unwrap();
    let sse = ["--transport", "sse", "--backend-era", "modern", "--url", "http://127.0.0.1:9/sse"];
    is_refused(&run(&sse), "a server that speaks HTTP+SSE cannot be of the era modern");
    for (flags, told) in [
        (&["--backend-era", "newest", "--", "true"][..], "possible values: auto, legacy, modern"),
        (&["--parked-calls", "off", "--", "true"], "cannot be used with"),
        (&["--backend-sessions", "shared", "--", "true"], "cannot be used with"),
        (&["--backend-session-idle", "1s", "--", "true"], "cannot be used with"),
        (&["--parked-calls", "off", "image"], "cannot be used with"),
        (&["--backend-session-idle", "0s", "--url", "http://127.0.0.1:9/mcp"], "a duration above zero is needed"),
        (&["--backend-era", "legacy", "image"], "cannot be used with"),
    ] {
        let refused = run(flags);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(told), "{flags:?}: {said}");
    }
}
