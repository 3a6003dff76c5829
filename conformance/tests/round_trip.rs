//! Objects of every kind survive the way through their Rust types.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::string::string_regex;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};
use skep_api::kinds::{
    EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRegistry, MCPRemoteProxy,
    MCPServer, MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPCompositeToolDefinition,
    VirtualMCPServer,
};
use skep_api::{Kind, crd};
use skep_conformance::validation::{self, schema};

/// Random objects per kind.
const CASES: u32 = 64;

macro_rules! for_every_kind {
    ($($test:ident: $kind:ident),+ $(,)?) => {
        $(#[test]
        fn $test() {
            survives::<$kind>();
        })+

        #[test]
        fn no_kind_is_forgotten() {
            let tested = [$(<$kind as Kind>::DEFINITION.kind),+];
            let all: Vec<&str> = crd::ALL.iter().map(|entry| entry.definition.kind).collect();
            assert_eq!(tested.to_vec(), all);
        }
    };
}

for_every_kind! {
    embedding_server: EmbeddingServer,
    mcp_authz_config: MCPAuthzConfig,
    mcp_external_auth_config: MCPExternalAuthConfig,
    mcp_group: MCPGroup,
    mcp_oidc_config: MCPOIDCConfig,
    mcp_registry: MCPRegistry,
    mcp_remote_proxy: MCPRemoteProxy,
    mcp_server: MCPServer,
    mcp_server_entry: MCPServerEntry,
    mcp_telemetry_config: MCPTelemetryConfig,
    mcp_tool_config: MCPToolConfig,
    mcp_webhook_config: MCPWebhookConfig,
    virtual_mcp_composite_tool_definition: VirtualMCPCompositeToolDefinition,
    virtual_mcp_server: VirtualMCPServer,
}

fn survives<K: Kind>() {
    let root = crd::root_schema::<K>();
    let tables = validation::load().unwrap();
    let table = tables.iter().find(|table| table.kind == K::DEFINITION.kind).unwrap();
    for base in &table.bases {
        check::<K>(&root, &base.object()).unwrap();
    }
    let objects = (value_of(&root["properties"]["spec"]), value_of(&root["properties"]["status"]))
        .prop_map(|(spec, status)| json!({ "metadata": { "name": "x" }, "spec": spec, "status": status }));
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    runner.run(&objects, |object| check::<K>(&root, &object)).unwrap();
}

fn check<K: Kind>(root: &Value, object: &Value) -> Result<(), TestCaseError> {
    let typed: K =
        serde_json::from_value(object.clone()).map_err(|error| TestCaseError::fail(format!("{error}: {object}")))?;
    let written = serde_json::to_value(&typed).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let again: K = serde_json::from_value(written.clone()).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(&typed, &again);

    // Nothing is lost, and nothing but the schema's defaults is added.
    let mut expected = object.clone();
    schema::apply_defaults(root, &mut expected);
    let mut found = json!({ "spec": written["spec"], "status": written["status"] });
    schema::apply_defaults(root, &mut found);
    for part in ["spec", "status"] {
        let schema = &root["properties"][part];
        prop_assert_eq!(without_empties(&found[part], schema), without_empties(&expected[part], schema));
    }
    Ok(())
}

/// To Kubernetes an empty list or map is the same as none. Raw parts are compared as they are.
fn without_empties(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Object(members) if schema["properties"].is_object() => {
            let kept = members.iter().filter_map(|(name, member)| {
                let property = &schema["properties"][name];
                let member = if property.is_object() { without_empties(member, property) } else { member.clone() };
                let is_map = property["additionalProperties"].is_object();
                let is_empty = member.as_array().is_some_and(Vec::is_empty)
                    || is_map && member.as_object().is_some_and(Map::is_empty);
                (!is_empty).then(|| (name.clone(), member))
            });
            Value::Object(kept.collect())
        }
        Value::Object(members) if schema["additionalProperties"].is_object() => Value::Object(
            members
                .iter()
                .map(|(name, member)| (name.clone(), without_empties(member, &schema["additionalProperties"])))
                .collect(),
        ),
        Value::Array(items) => items.iter().map(|item| without_empties(item, &schema["items"])).collect(),
        other => other.clone(),
    }
}

/// Random values that a structural schema describes.
fn value_of(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return proptest::sample::select(values.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => integers(schema),
        Some("string") => strings(schema),
        Some("array") => {
            let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap();
            vec(value_of(&schema["items"]), least..least + 3).prop_map(Value::from).boxed()
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            let values = value_of(&schema["additionalProperties"]);
            btree_map("[a-z]{1,8}", values, 0..3).prop_map(|map| map.into_iter().collect()).boxed()
        }
        Some("object") if schema["properties"].is_object() => objects(schema),
        Some("object") => {
            btree_map("[a-zA-Z-]{1,8}", anything(), 0..4).prop_map(|map| map.into_iter().collect()).boxed()
        }
        // The API server drops a null that the schema does not call nullable, so none reaches us here.
        _ => anything().prop_filter("null is absent", |value| !value.is_null()).boxed(),
    }
}

/// Required members always, the others half of the time; unknown ones where the schema keeps them.
fn objects(schema: &Value) -> BoxedStrategy<Value> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut members: BoxedStrategy<Map<String, Value>> = Just(Map::new()).boxed();
    for (name, property) in schema["properties"].as_object().unwrap() {
        let value = value_of(property);
        let member = if required.contains(&name.as_str()) {
            value.prop_map(Some).boxed()
        } else {
            proptest::option::of(value).boxed()
        };
        let name = name.clone();
        members = (members, member)
            .prop_map(move |(mut members, member)| {
                members.extend(member.map(|member| (name.clone(), member)));
                members
            })
            .boxed();
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        let unknown = btree_map("unknown-[a-z]{1,5}", anything(), 0..3);
        members = (members, unknown)
            .prop_map(|(mut members, unknown)| {
                members.extend(unknown);
                members
            })
            .boxed();
    }
    members.prop_map(Value::Object).boxed()
}

fn integers(schema: &Value) -> BoxedStrategy<Value> {
    let (least, most) = match schema["format"].as_str() {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let least = schema["minimum"].as_i64().unwrap_or(least);
    let most = schema["maximum"].as_i64().unwrap_or(most);
    (least..=most).prop_map(Value::from).boxed()
}

fn strings(schema: &Value) -> BoxedStrategy<Value> {
    if schema["format"] == "date-time" {
        // Conditions are kept to the second, as Kubernetes writes them.
        let second = 0..4_000_000_000_i64;
        return second
            .prop_map(|second| {
                let time = k8s_openapi::jiff::Timestamp::from_second(second).unwrap();
                json!(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time))
            })
            .boxed();
    }
    match schema["pattern"].as_str() {
        Some(pattern) => {
            string_regex(pattern.trim_start_matches('^').trim_end_matches('$')).unwrap().prop_map(Value::from).boxed()
        }
        None => "\\PC{1,12}".prop_map(Value::from).boxed(),
    }
}

/// Any JSON value. Whole numbers and binary fractions, as the API server stores them.
fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no infinity", |number| number.is_finite()).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("\\PC{0,8}", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
    .boxed()
}
