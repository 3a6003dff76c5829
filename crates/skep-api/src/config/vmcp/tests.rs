use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::kinds::rate_limit::{RateLimiting, RefillPeriod, TokenBucket};
use crate::schema;

/// A document with every member that the schema describes.
const FULL: &str = include_str!("full.yaml");

/// Members that the schema describes and none of the samples has.
fn members_left_out(samples: &[&Value], schema: &Value, path: &str, missing: &mut Vec<String>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let members: Vec<&Value> = samples.iter().filter_map(|sample| sample.get(name)).collect();
        if members.is_empty() {
            missing.push(path);
        } else {
            members_left_out(&members, schema, &path, missing);
        }
    }
    if let Some(schema) = schema.get("items") {
        let items: Vec<&Value> = samples.iter().filter_map(|sample| sample.as_array()).flatten().collect();
        members_left_out(&items, schema, &format!("{path}[]"), missing);
    }
    if let Some(schema) = schema.get("additionalProperties") {
        let values: Vec<&Value> =
            samples.iter().filter_map(|sample| sample.as_object()).flat_map(Map::values).collect();
        members_left_out(&values, schema, &format!("{path}{{}}"), missing);
    }
}

#[test]
fn the_full_document_has_every_member_of_the_schema() {
    let document: Value = serde_saphyr::from_str(FULL).unwrap();
    let mut missing = Vec::new();
    members_left_out(&[&document], &schema::of::<VmcpConfig>(), "", &mut missing);
    // The same type as in outgoingAuth.backends, where every strategy has its example.
    missing.retain(|path| !path.starts_with(".outgoingAuth.default."));
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_full_document_survives_yaml_and_json() {
    let config = VmcpConfig::from_yaml(FULL).unwrap();
    assert_eq!(config.unknown_members(), Vec::<String>::new());
    assert_eq!(VmcpConfig::from_yaml(&config.to_yaml().unwrap()).unwrap(), config);
    assert_eq!(serde_json::from_value::<VmcpConfig>(serde_json::to_value(&config).unwrap()).unwrap(), config);
}

#[test]
fn nothing_of_the_full_document_is_lost_or_added() {
    let mut before: Value = serde_saphyr::from_str(FULL).unwrap();
    let mut after: Value = serde_saphyr::from_str(&VmcpConfig::from_yaml(FULL).unwrap().to_yaml().unwrap()).unwrap();
    // The two forms of a period are one and the same to a reader.
    before["rateLimiting"] = Value::Null;
    after["rateLimiting"] = Value::Null;
    assert_eq!(after, before);
}

#[test]
fn a_period_is_read_in_both_forms() {
    let limits = VmcpConfig::from_yaml(FULL).unwrap().rate_limiting.unwrap();
    assert_eq!(limits.shared.unwrap().refill_period, RefillPeriod::from("1m0s"));
    assert_eq!(limits.per_user.unwrap().refill_period, RefillPeriod::from("30s"));
    assert_eq!(limits.tools[0].shared.clone().unwrap().refill_period, RefillPeriod::from("10s"));
    assert!(VmcpConfig::from_yaml("rateLimiting: {shared: {maxTokens: 1, refillPeriod: {minutes: 1}}}").is_err());
}

#[test]
fn a_period_is_nested_in_yaml_and_text_in_json() {
    let bucket = TokenBucket { max_tokens: 3, refill_period: "1m0s".into() };
    let limits = RateLimiting { shared: Some(bucket), ..Default::default() };
    let config = VmcpConfig { rate_limiting: Some(limits), ..Default::default() };
    assert_eq!(
        config.to_yaml().unwrap(),
        "rateLimiting:\n  shared:\n    maxTokens: 3\n    refillPeriod:\n      duration: 1m0s\n"
    );
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(json, json!({ "rateLimiting": { "shared": { "maxTokens": 3, "refillPeriod": "1m0s" } } }));
}

#[test]
fn unknown_members_survive_and_are_named() {
    let text = "name: desk\nfuture: {a: [1, 2.5, null, x]}\nanother: true\n";
    let config = VmcpConfig::from_yaml(text).unwrap();
    assert_eq!(config.unknown_members(), ["another", "future"]);
    assert_eq!(config.other["future"], json!({ "a": [1, 2.5, null, "x"] }));
    assert_eq!(VmcpConfig::from_yaml(&config.to_yaml().unwrap()).unwrap(), config);
}

#[test]
fn unknown_members_are_found_at_any_depth() {
    let text = "
        nmae: desk
        aggregation: {tools: [{workload: a}, {workload: b, fliter: [x]}]}
        compositeTools: [{name: c, steps: [{id: s, arguments: {anything: goes}, onError: {retries: 3}}]}]
        outgoingAuth: {source: inline, backends: {github: {type: xaa, xaaa: {}}}}
        metadata: {free: form}
        rateLimiting: {shared: {maxTokens: 1, refillPeriod: {duration: 1s}}}
        telemetry:
    ";
    assert_eq!(
        VmcpConfig::unknown_members_of_yaml(text).unwrap(),
        [
            "aggregation.tools[1].fliter",
            "compositeTools[0].steps[0].onError.retries",
            "nmae",
            "outgoingAuth.backends.github.xaaa",
        ]
    );
    assert_eq!(VmcpConfig::unknown_members_of_yaml(FULL).unwrap(), Vec::<String>::new());
}

#[test]
fn the_same_configuration_gives_the_same_bytes() {
    let one = "{name: a, metadata: {a: '1', b: '2'}, zeta: {q: 1, p: 2}, alpha: 1}";
    let other = "{alpha: 1, zeta: {p: 2, q: 1}, metadata: {b: '2', a: '1'}, name: a}";
    let written = |text| VmcpConfig::from_yaml(text).unwrap().to_yaml().unwrap();
    assert_eq!(written(one), written(other));
    assert_eq!(written(one), "alpha: 1\nmetadata:\n  a: \"1\"\n  b: \"2\"\nname: a\nzeta:\n  p: 2\n  q: 1\n");
}

#[test]
fn durations_are_written_as_go_prints_them() {
    let text = "
        codeMode: {toolCallTimeout: 90s}
        compositeTools: [{name: a, timeout: 60m, steps: [{id: s, tool: 60s, arguments: {wait: 60s}}]}]
        operational: {timeouts: {default: soon, perWorkload: {a: 1.5h}}}
        rateLimiting: {shared: {maxTokens: 1, refillPeriod: 3600s}}
    ";
    let written: Value = serde_saphyr::from_str(&VmcpConfig::from_yaml(text).unwrap().to_yaml().unwrap()).unwrap();
    let step = json!({ "id": "s", "tool": "60s", "arguments": { "wait": "60s" } });
    assert_eq!(
        written,
        json!({
            "codeMode": { "toolCallTimeout": "1m30s" },
            "compositeTools": [{ "name": "a", "timeout": "1h0m0s", "steps": [step] }],
            "operational": { "timeouts": { "default": "soon", "perWorkload": { "a": "1h30m0s" } } },
            "rateLimiting": { "shared": { "maxTokens": 1, "refillPeriod": { "duration": "1h0m0s" } } },
        })
    );
}

#[test]
fn what_is_absent_stays_absent() {
    assert_eq!(VmcpConfig::default().to_yaml().unwrap().trim(), "{}");
    let config = VmcpConfig::from_yaml("operational: {failureHandling: {circuitBreaker: {}}}").unwrap();
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(json, json!({ "operational": { "failureHandling": { "circuitBreaker": {} } } }));
}

#[test]
fn an_empty_list_may_be_written_as_nothing() {
    let config = VmcpConfig::from_yaml("backends:\nmetadata:\ntelemetry:\nname: a").unwrap();
    assert_eq!(config, VmcpConfig { name: Some("a".to_owned()), ..Default::default() });
}

#[test]
fn a_client_id_may_be_left_out_of_a_file() {
    let config = VmcpConfig::from_yaml("incomingAuth: {type: oidc, oidc: {issuer: 'https://i', audience: a}}").unwrap();
    assert_eq!(config.incoming_auth.unwrap().oidc.unwrap().client_id, "");
}

#[test]
fn numbers_without_quotes_are_text_where_text_is_wanted() {
    let config = VmcpConfig::from_yaml("telemetry: {samplingRate: 0.25}\nmetadata: {answer: 42}").unwrap();
    assert_eq!(config.telemetry.unwrap().sampling_rate.as_deref(), Some("0.25"));
    assert_eq!(config.metadata["answer"], "42");
}

#[test]
fn a_mistake_is_reported_with_its_line() {
    let error = VmcpConfig::from_yaml("name: a\naudit:\n  enabled: perhaps\n").unwrap_err().to_string();
    assert_eq!(error, "vMCP configuration cannot be read: invalid boolean at line 3, column 12");
}

#[test]
fn inner_steps_and_nested_outputs_are_read() {
    let config = VmcpConfig::from_yaml(FULL).unwrap();
    let tool = &config.composite_tools[0];
    assert_eq!(tool.steps[2].inner().unwrap().unwrap().tool.as_deref(), Some("github.open"));
    assert_eq!(tool.steps[0].inner().unwrap(), None);
    let output = tool.output.as_ref().unwrap();
    assert_eq!(output.properties["nested"].nested().unwrap()["first"].value.as_deref(), Some("x"));
}

proptest! {
    #[test]
    fn any_text_survives(
        key in "\\PC{0,12}",
        value in any::<String>(),
        lines in "([ -~]{0,100}\n){0,4}[ -~\t]{0,200}",
    ) {
        let config = VmcpConfig {
            metadata: BTreeMap::from([(key, value), ("lines".to_owned(), lines.clone())]),
            composite_tool_refs: vec![LooseObjectRef { name: lines }],
            ..Default::default()
        };
        let text = config.to_yaml().unwrap();
        prop_assert_eq!(VmcpConfig::from_yaml(&text).unwrap(), config, "{}", text);
    }
}
