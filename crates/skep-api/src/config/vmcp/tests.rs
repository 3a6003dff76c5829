use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

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
    assert_eq!(config.unknown_members().unwrap(), Vec::<String>::new());
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
    let bucket = TokenBucket { max_tokens: 3, refill_period: "1m0s".into(), ..Default::default() };
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
    assert_eq!(config.unknown_members().unwrap(), ["another", "future"]);
    assert_eq!(config.other.0["future"], json!({ "a": [1, 2.5, null, "x"] }));
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
        rateLimiting: {shared: {maxTokens: 1, refillPeriod: {duration: 1s, unit: s}}}
        telemetry:
    ";
    let unknown = [
        "aggregation.tools[1].fliter",
        "compositeTools[0].steps[0].onError.retries",
        "nmae",
        "outgoingAuth.backends.github.xaaa",
        "rateLimiting.shared.refillPeriod.unit",
    ];
    assert_eq!(VmcpConfig::unknown_members_of_yaml(text).unwrap(), unknown);
    assert_eq!(VmcpConfig::from_yaml(text).unwrap().unknown_members().unwrap(), unknown);
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

/// The places of a document that hold a list or a map, as JSON pointers, each with what is empty there.
fn lists_and_maps(value: &Value, schema: &Value, pointer: &str, found: &mut Vec<(String, Value)>) {
    if schema["type"] == "array" {
        found.push((pointer.to_owned(), json!([])));
    } else if schema["additionalProperties"].is_object() {
        found.push((pointer.to_owned(), json!({})));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let schema = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                lists_and_maps(member, schema, &format!("{pointer}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                lists_and_maps(item, &schema["items"], &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn null_is_an_empty_list_or_map_in_json_and_yaml() {
    let document: Value = serde_saphyr::from_str(FULL).unwrap();
    let mut places = Vec::new();
    lists_and_maps(&document, &schema::of::<VmcpConfig>(), "", &mut places);
    assert!(places.len() >= 30, "{places:?}");
    for (pointer, empty) in places {
        let with = |value| {
            let mut document = document.clone();
            *document.pointer_mut(&pointer).unwrap() = value;
            document
        };
        let expected: VmcpConfig = serde_json::from_value(with(empty)).unwrap();
        let yaml = serde_saphyr::to_string(&with(Value::Null)).unwrap();
        assert_eq!(serde_json::from_value::<VmcpConfig>(with(Value::Null)).unwrap(), expected, "{pointer}");
        assert_eq!(VmcpConfig::from_yaml(&yaml).unwrap(), expected, "{pointer}");
    }
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
fn a_mistake_beside_unknown_members_is_reported_with_its_line() {
    let text = "codeMode:\n  later: 1\n  stepLimit: many\n";
    let error = VmcpConfig::from_yaml(text).unwrap_err().to_string();
    assert!(error.ends_with("at line 3, column 14"), "{error}");
    let error = VmcpConfig::from_yaml("name: a\nincomingAuth:\n  oidc: {}\n").unwrap_err().to_string();
    assert!(error.contains("line"), "{error}");
}

/// Puts the members into every object of the document that may have members of any name, and counts these objects.
fn insert_everywhere(value: &mut Value, schema: &Value, members: &Map<String, Value>) -> usize {
    match value {
        Value::Object(object) => {
            let below: usize = object
                .iter_mut()
                .map(|(name, member)| {
                    let schema = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                    insert_everywhere(member, schema, members)
                })
                .sum();
            if schema["additionalProperties"].is_object() {
                return below;
            }
            object.extend(members.clone());
            below + 1
        }
        Value::Array(items) => items.iter_mut().map(|item| insert_everywhere(item, &schema["items"], members)).sum(),
        _ => 0,
    }
}

fn assert_survive(members: &Map<String, Value>) {
    let mut document: Value = serde_saphyr::from_str(FULL).unwrap();
    let objects = insert_everywhere(&mut document, &schema::of::<VmcpConfig>(), members);
    assert!(objects > 60, "{objects}");
    let config: VmcpConfig = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&config).unwrap(), document);
    let yaml = config.to_yaml().unwrap();
    assert_eq!(VmcpConfig::from_yaml(&yaml).unwrap(), config, "{yaml}");
    assert_eq!(config.to_yaml().unwrap(), VmcpConfig::from_yaml(&yaml).unwrap().to_yaml().unwrap());
}

/// Unknown members are read through a buffer, where numbers go wrong first.
#[test]
fn unknown_numbers_survive_at_every_level() {
    let numbers = json!([
        0,
        -1,
        i64::MIN,
        i64::MAX,
        u64::MAX,
        0.1,
        -0.5,
        1e300,
        5e-324,
        1.5e10,
        9_007_199_254_740_993_u64,
        "1",
        "1e3",
        "0x1F",
        "1_000",
        "0o7",
        "012",
        ".inf",
        ".nan",
        "null",
        "~",
        "true",
        "no",
        "2024-01-01",
        "1:30",
        "",
    ]);
    assert_survive(&Map::from_iter([
        ("x_numbers".to_owned(), numbers.clone()),
        ("x_map".to_owned(), json!({ "a": numbers })),
    ]));
}

#[test]
fn unknown_members_with_odd_names_survive() {
    for name in
        ["1", "1.5", "true", "null", "~", "", " ", "a: b", "- a", "#", "é", "<<", "*a", "&a", "!t", "\n", "'", "\""]
    {
        assert_survive(&Map::from_iter([(name.to_owned(), json!("x"))]));
    }
}

/// An unknown member goes through a buffer; it must be read as it would be without one.
#[test]
fn unknown_members_are_read_as_anywhere_in_yaml() {
    for text in [
        "18446744073709551616",
        "-9223372036854775809",
        "0x1F",
        "1_000",
        "!!str 5",
        "2024-01-01",
        "yes",
        "&x [1]\n  b: *x",
        "|\n    a\n    b\n",
    ] {
        let text = format!("codeMode:\n  a: {text}");
        let document: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(VmcpConfig::from_yaml(&text).unwrap()).unwrap(), document, "{text}");
    }
    // JSON has no such number. Refusing it is better than losing it.
    assert!(VmcpConfig::from_yaml("codeMode: {a: .inf}").is_err());
}

/// A name that is no text in YAML becomes one, as in any JSON object.
#[test]
fn unknown_names_without_quotes_are_texts() {
    let config = VmcpConfig::from_yaml("{1: a, codeMode: {true: b, 2.5: c, enabled: true}}").unwrap();
    assert_eq!(
        serde_json::to_value(&config).unwrap(),
        json!({ "1": "a", "codeMode": { "true": "b", "2.5": "c", "enabled": true } })
    );
}

#[test]
fn debug_shows_no_secret() {
    let strategy = |name: &str, members: Value| json!({ "type": name, name: members });
    let config: VmcpConfig = serde_json::from_value(json!({
        "compositeTools": [{
            "name": "a",
            "parameters": { "default": "hunter2" },
            "output": { "properties": { "p": { "type": "string", "default": "hunter2", "properties": { "q": "hunter2" } } } },
            "steps": [{
                "id": "s",
                "arguments": { "token": "hunter2" },
                "defaultResults": ["hunter2"],
                "schema": { "x": "hunter2" },
                "step": { "arguments": "hunter2" },
            }],
        }],
        "optimizer": { "embeddingHeaders": { "X-Key": "hunter2" } },
        "outgoingAuth": {
            "source": "inline",
            "default": strategy("headerInjection", json!({ "headerName": "X", "headerValue": "hunter2" })),
            "backends": {
                "a": strategy("obo", json!({ "tokenUrl": "u", "clientSecret": "hunter2" })),
                "b": strategy("tokenExchange", json!({ "tokenUrl": "u", "clientSecret": "hunter2" })),
                "c": strategy("xaa", json!({
                    "idpTokenUrl": "u", "targetTokenUrl": "u", "targetAudience": "a",
                    "idpClientSecret": "hunter2", "targetClientSecret": "hunter2",
                })),
            },
        },
        "telemetry": { "headers": { "authorization": "hunter2" }, "later": "hunter2" },
        "rateLimiting": { "shared": { "maxTokens": 1, "refillPeriod": { "duration": "1s", "later": "hunter2" } } },
        "later": { "password": "hunter2" },
    }))
    .unwrap();
    assert_eq!(config.to_yaml().unwrap().matches("hunter2").count(), 17);
    let (short, long) = (format!("{config:?}"), format!("{config:#?}"));
    assert!(!short.contains("hunter2") && !long.contains("hunter2"), "{long}");
    assert!(short.contains("authorization") && short.contains("X-Key") && short.contains("later"), "{short}");
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

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300_f64).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("\\PC{0,6}", inner, 0..4).prop_map(|members| Value::from(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unknown_members_survive_at_every_level(members in btree_map("x_\\PC{0,8}", arbitrary_json(), 1..4)) {
        assert_survive(&Map::from_iter(members));
    }

    #[test]
    fn any_text_survives(
        key in "\\PC{0,12}",
        value in any::<String>(),
        lines in "([ -~]{0,100}\n){0,4}[ -~\t]{0,200}",
    ) {
        let config = VmcpConfig {
            metadata: BTreeMap::from([(key, value), ("lines".to_owned(), lines.clone())]),
            composite_tool_refs: vec![LooseObjectRef { name: lines, ..Default::default() }],
            ..Default::default()
        };
        let text = config.to_yaml().unwrap();
        prop_assert_eq!(VmcpConfig::from_yaml(&text).unwrap(), config, "{}", text);
    }
}
