use serde_json::{Value, json};

use super::*;

fn parsed(document: Value) -> RunConfig {
    serde_json::from_value(document).unwrap()
}

#[test]
fn an_empty_document_has_exactly_the_members_that_are_always_written() {
    let expected = json!({
        "schema_version": "", "image": "", "name": "", "transport": "", "host": "", "port": 0, "permission_profile": null,
    });
    assert_eq!(serde_json::to_value(RunConfig::default()).unwrap(), expected);
    assert_eq!(serde_json::to_value(parsed(json!({}))).unwrap(), expected);
}

#[test]
fn nulls_are_empties() {
    let text = r#"{"env_vars":null,"container_labels":null,"cmd_args":null,"volumes":null,"secrets":null,"port":null}"#;
    let config = RunConfig::from_json(text).unwrap();
    assert!(config.env_vars.is_empty() && config.cmd_args.is_empty() && config.secrets.is_empty());
    assert_eq!(config.schema_version, "v0.1.0");
}

#[test]
fn the_proxy_mode_follows_the_transport() {
    for (transport, configured, effective) in [
        ("stdio", "", "streamable-http"),
        ("stdio", "sse", "sse"),
        ("stdio", "streamable-http", "streamable-http"),
        ("stdio", "carrier-pigeon", "carrier-pigeon"),
        ("sse", "", "sse"),
        ("sse", "streamable-http", "sse"),
        ("streamable-http", "sse", "streamable-http"),
        ("inspector", "", ""),
        ("", "sse", "sse"),
    ] {
        let config = parsed(json!({ "transport": transport, "proxy_mode": configured })).normalised();
        assert_eq!(config.proxy_mode.as_str(), effective, "{transport} {configured}");
    }
}

#[test]
fn networks_of_other_modes_are_not_isolated() {
    for (mode, isolated) in [("", true), ("bridge", true), ("default", true), ("host", false), ("none", false)] {
        let profile = json!({ "network": { "mode": mode } });
        let config = parsed(json!({ "isolate_network": true, "permission_profile": profile }));
        assert_eq!(config.normalised().isolate_network, isolated, "{mode:?}");
    }
    assert!(parsed(json!({ "isolate_network": true })).normalised().isolate_network);
    assert!(!parsed(json!({})).normalised().isolate_network);
}

#[test]
fn normalising_twice_changes_nothing() {
    let config = parsed(json!({ "transport": "sse", "isolate_network": true })).normalised();
    assert_eq!(config.clone().normalised(), config);
}

#[test]
fn errors_name_the_place_and_not_the_value() {
    let error = RunConfig::from_json(r#"{"oidc_config":{"ClientSecret":["hunter2"]}}"#).unwrap_err();
    let expected = "the RunConfig does not fit: oidc_config.ClientSecret: expected a text, found a list";
    assert_eq!(error.to_string(), expected);
    assert!(matches!(RunConfig::from_json("{"), Err(RunConfigError::Syntax(_))));
}

#[test]
fn oidc_members_are_read_in_any_letters_and_all_written() {
    let config = parsed(json!({ "oidc_config": { "issuer": "https://i", "jwksUrl": "https://k" } }));
    let oidc = config.oidc_config.unwrap();
    assert_eq!((oidc.issuer.as_str(), oidc.jwks_url.as_str()), ("https://i", "https://k"));
    let written = serde_json::to_value(&oidc).unwrap();
    assert_eq!(written.as_object().unwrap().len(), 12);
    assert_eq!(written["Scopes"], Value::Null);
    assert_eq!(written["ClientSecret"], "");
}

#[test]
fn debug_shows_no_secret() {
    let config = parsed(json!({
        "env_vars": { "API_KEY": "hunter2" },
        "k8s_pod_template_patch": "hunter2",
        "oidc_config": { "ClientSecret": "hunter2" },
        "remote_auth_config": { "client_secret": "hunter2", "bearer_token": "hunter2", "oauth_params": { "p": "hunter2" } },
        "token_exchange_config": { "client_secret": "hunter2" },
        "telemetry_config": { "headers": { "authorization": "hunter2" } },
        "header_forward": { "add_plaintext_headers": { "X-Key": "hunter2" } },
        "middleware_configs": [{ "type": "auth", "parameters": { "oidc_config": { "ClientSecret": "hunter2" } } }],
        "authz_config": { "type": "later", "token": "hunter2" },
        "later": { "password": "hunter2" },
    }));
    assert!(config.to_json().contains("hunter2"));
    let (short, long) = (format!("{config:?}"), format!("{config:#?}"));
    assert!(!short.contains("hunter2") && !long.contains("hunter2"), "{long}");
    assert!(short.contains("API_KEY") && short.contains("X-Key"), "{short}");
}

#[test]
fn the_text_is_indented_and_does_not_change() {
    let config = parsed(json!({ "name": "n", "env_vars": { "B": "2", "A": "1" } }));
    let text = config.to_json();
    assert!(text.starts_with("{\n  \"env_vars\": {\n    \"A\": \"1\",\n    \"B\": \"2\"\n  },\n"), "{text}");
    assert!(text.ends_with("\n}"));
    assert_eq!(text, serde_json::from_str::<RunConfig>(&text).unwrap().to_json());
}
