//! A RunConfig for a proxy that somebody runs by hand.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::http::Request;
use super::{ANY, Serving, is_refused, message};

fn config(members: &Value) -> (TempDir, String) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("own.json");
    fs::write(&file, members.to_string()).unwrap();
    (folder, file.to_str().unwrap().to_owned())
}

/// Only one tool may be called.
fn policies() -> Value {
    let policies = [r#"permit(principal, action, resource == Tool::"echo");"#];
    json!({"name": "own", "authz_config": {"version": "1.0", "type": "cedarv1",
        "cedar": {"policies": policies, "entities_json": "[]"}}})
}

#[test]
fn a_command_and_a_server_at_a_url_are_protected_as_a_file_says() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let (_folder, file) = config(&policies());
    let command = ["--config", &file, "--", skep, "demo", "echo", "--transport", "stdio"];
    let lines = Serving::start(&[&ANY[..], &command].concat());
    let open = Serving::start(&[&ANY[..], &["--", skep, "demo", "echo", "--transport", "stdio"]].concat());
    let url = format!("http://{}/mcp", open.address);
    let remote = Serving::start(&[&ANY[..], &["--config", &file, "--url", &url]].concat());
    for proxy in [&lines, &remote] {
        assert_eq!(proxy.call("echo", &json!({"message": "hi"}))["content"][0]["text"], "hi");
        let refused = proxy.call_in(&proxy.session(), "add", &json!({"a": 2, "b": 3}));
        assert_eq!(refused.status, 403);
    }
}

#[test]
fn a_strict_proxy_begins_no_session_for_a_revision_that_nobody_knows() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    for (is_strict, status) in [(false, 200), (true, 400)] {
        let (_folder, file) = config(&json!({"name": "own", "strict_protocol_validation": is_strict}));
        let proxy = Serving::start(&[&ANY[..], &["--config", &file, "--", skep, "demo", "echo"]].concat());
        // It is there.
        proxy.session();
        let hello = message(1, "initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
        let response = Request::post(&hello).header("MCP-Protocol-Version", "2099-01-01").send(&proxy.address);
        assert_eq!(response.status, status);
    }
}

#[test]
fn a_secret_that_makes_no_key_is_told_without_it() {
    let mut command = Command::new(cargo_bin!("skep"));
    command.args(ANY).args(["--", "true"]).env("SKEP_REQUEST_STATE_KEY", "hunter2");
    let output = command.output().unwrap();
    is_refused(&output, "SKEP_REQUEST_STATE_KEY: the secret is too short");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hunter2"));
}

#[test]
fn what_cannot_be_used_of_a_file_is_told() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    for (members, told) in [
        (
            json!({"authz_config": {"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["permit("]}}}),
            "authz_config",
        ),
        (json!({"proxy_mode": "carrier-pigeon"}), "carrier-pigeon"),
        (json!({"embedded_auth_server_config": {}}), "embedded_auth_server_config"),
        (json!({"port": 70_000}), "70000"),
        (json!({"oidcConfig": {}}), "oidcConfig: no such member; did you mean oidc_config?"),
        (json!({"x": 1, "authz_confg": {}}), "authz_confg: no such member; did you mean authz_config?"),
        (
            json!({"middleware_configs": [{"type": "auth", "parameters": {"oidcConfig": {}}}]}),
            "middleware_configs[0].parameters.oidcConfig: no such member; did you mean oidc_config?",
        ),
        (json!({"authz_config_path": "/nowhere.json"}), "authz_config_path: no file is read for it"),
        (
            json!({"audit_config": {}, "audit_config_path": "/nowhere.json"}),
            "audit_config_path: no file is read for it",
        ),
        (json!({"remote_auth_config": {"bearer_token": "t"}}), "remote_auth_config: a command has no use for it"),
        (json!({"allowed_origins": ["not a url"]}), "allowed_origins: \"not a url\" is no origin"),
        (
            json!({"middleware_configs": [{"type": "origin", "parameters": {"allowed_origins": ["*"]}}]}),
            "middleware_configs[0].parameters.allowed_origins: \"*\" is no origin",
        ),
        (
            json!({"middleware_configs": [{"type": "bodylimit", "parameters": {"max_bytes": -1}}]}),
            "middleware_configs[0].parameters.max_bytes: -1 is below zero",
        ),
        (json!({"middleware_configs": [{"type": "auth"}, {"type": "auth"}]}), "has the step auth twice"),
    ] {
        let (_folder, file) = config(&members);
        let output = Command::new(skep).args(["proxy", "run", "--config", &file, "--", "true"]).output();
        is_refused(&output.unwrap(), told);
    }
    let output = Command::new(skep).args(["proxy", "run", "--config", "/no/such/file", "--", "true"]).output();
    is_refused(&output.unwrap(), "/no/such/file");
}
