//! Whole RunConfig documents go through the types without loss.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};
use skep_api::config::document::{Part, read};
use skep_api::config::run_config::middleware::{
    AuditParameters, AuthParameters, AuthorizationParameters, AwsStsParameters, BodyLimitParameters,
    HeaderForwardParameters, MiddlewareConfig, MiddlewareType, NoParameters, OriginParameters, RateLimitParameters,
    TelemetryParameters, TokenExchangeParameters, ToolFilterParameters, UpstreamSwapParameters, WebhookParameters,
};
use skep_api::config::run_config::{AuthzConfig, AuthzType, RunConfig};
use skep_api::config::strangers::strangers;

#[path = "run_config/objects.rs"]
mod objects;
#[path = "run_config/words.rs"]
mod words;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run_config")
}

fn document(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Every document, with its file name, in the order of the names.
fn documents() -> Vec<(String, Value)> {
    let entries = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no documents");
    paths.iter().map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), document(path))).collect()
}

/// Through the types and through a text.
fn rewritten(document: &Value) -> Value {
    let config: RunConfig = read(document.clone()).unwrap();
    serde_json::from_str(&config.to_json()).unwrap()
}

#[test]
fn documents_are_rewritten_without_loss() {
    for (name, document) in documents() {
        assert_eq!(rewritten(&document), document, "{name}");
    }
}

/// Whether all members are declared, at every level. A member whose name is misspelled in the types survives as an
/// undeclared one, which `Debug` shows.
fn is_known(object: &impl Debug) -> bool {
    !format!("{object:?}").contains("other: {")
}

/// One document has a section that no authorizer reads, on purpose.
fn strange_to(name: &str) -> &'static [&'static str] {
    match name {
        "authz-http" => &["authz_config.notes", "middleware_configs[0].parameters.config_data.notes"],
        _ => &[],
    }
}

#[test]
fn every_member_of_the_documents_is_known() {
    for (name, document) in documents() {
        let config: RunConfig = read(document).unwrap();
        assert!(is_known(&config), "{name}: {config:?}");
        let unknown: Vec<String> = strangers(&config).into_iter().map(|stranger| stranger.path).collect();
        assert_eq!(unknown, strange_to(&name), "{name}");
    }
}

#[test]
fn an_unknown_member_is_noticed_at_every_level() {
    for document in [json!({ "x": 1 }), json!({ "scaling_config": { "session_redis": { "x": 1 } } })] {
        assert!(!is_known(&read::<RunConfig>(document).unwrap()));
    }
}

/// The top-level members of 30-proxy.md 2.1.
const MEMBERS: &str = "
    additional_middleware_configs allow_docker_gateway allowed_origins audit_config audit_config_path authz_config
    authz_config_path aws_sts_config base_name cmd_args container_labels container_name debug
    embedded_auth_server_config endpoint_prefix env_file_dir env_vars group header_forward host ignore_config image
    isolate_network jwks_auth_token_file k8s_pod_template_patch mcpserver_generation middleware_configs
    mutating_webhooks name oidc_config permission_profile permission_profile_name_or_path port proxy_mode publish
    rate_limit_config rate_limit_namespace registry_api_url registry_server_name registry_url remote_auth_config
    remote_url runtime_config scaling_config schema_version secrets session_ttl stateless strict_protocol_validation
    target_host target_port telemetry_config thv_ca_bundle token_exchange_config tools_filter tools_override
    transport trust_proxy_headers upstream_swap_config validating_webhooks volumes
";

#[test]
fn every_member_is_in_a_document() {
    let documents = documents();
    for member in MEMBERS.split_whitespace() {
        assert!(documents.iter().any(|(_, document)| document.get(member).is_some()), "{member}");
    }
}

/// The parameters as they are written again, all of them known.
fn view<T: Part + Serialize + Debug>(step: &MiddlewareConfig) -> Value {
    let parameters = step.read_parameters::<T>().unwrap();
    assert!(is_known(&parameters), "{}: {parameters:?}", step.type_);
    serde_json::to_value(parameters).unwrap()
}

#[test]
fn the_parameters_of_known_steps_can_be_viewed_without_loss() {
    for (name, document) in documents() {
        for step in read::<RunConfig>(document).unwrap().middleware_configs {
            let viewed = match &step.type_ {
                MiddlewareType::BodyLimit => view::<BodyLimitParameters>(&step),
                MiddlewareType::Origin => view::<OriginParameters>(&step),
                MiddlewareType::Audit => view::<AuditParameters>(&step),
                MiddlewareType::Auth => view::<AuthParameters>(&step),
                MiddlewareType::UpstreamSwap => view::<UpstreamSwapParameters>(&step),
                MiddlewareType::TokenExchange => view::<TokenExchangeParameters>(&step),
                MiddlewareType::ToolFilter | MiddlewareType::ToolCallFilter => view::<ToolFilterParameters>(&step),
                MiddlewareType::StripAuth | MiddlewareType::McpParser | MiddlewareType::UsageMetrics => {
                    view::<NoParameters>(&step)
                }
                MiddlewareType::Telemetry => view::<TelemetryParameters>(&step),
                MiddlewareType::RateLimit => view::<RateLimitParameters>(&step),
                MiddlewareType::MutatingWebhook | MiddlewareType::ValidatingWebhook => view::<WebhookParameters>(&step),
                MiddlewareType::Authorization => view::<AuthorizationParameters>(&step),
                MiddlewareType::AwsSts => view::<AwsStsParameters>(&step),
                MiddlewareType::HeaderForward => view::<HeaderForwardParameters>(&step),
                MiddlewareType::Obo | MiddlewareType::Recovery | MiddlewareType::Other(_) => continue,
            };
            assert_eq!(viewed, step.parameters.0, "{name}: {}", step.type_);
        }
    }
}

/// The authorization documents of a RunConfig: at the top and in the chain.
fn authorization_documents(config: &RunConfig) -> Vec<AuthzConfig> {
    let steps = config.middleware_configs.iter().filter(|step| step.type_ == MiddlewareType::Authorization);
    let in_chain = steps.filter_map(|step| step.read_parameters::<AuthorizationParameters>().unwrap().config_data);
    config.authz_config.clone().into_iter().chain(in_chain).collect()
}

#[test]
fn the_sections_of_authorizers_can_be_viewed_without_loss() {
    for (name, document) in documents() {
        for authz in authorization_documents(&read(document).unwrap()) {
            let (cedar, http) = (authz.cedar().unwrap(), authz.http().unwrap());
            assert!(is_known(&cedar) && is_known(&http), "{name}: {cedar:?} {http:?}");
            let (section, viewed) = match authz.authorizer() {
                AuthzType::Cedar => ("cedar", serde_json::to_value(cedar).unwrap()),
                AuthzType::Http => ("pdp", serde_json::to_value(http).unwrap()),
                AuthzType::Other(other) => panic!("{name}: {other}"),
            };
            assert_eq!(viewed, authz.0[section], "{name}");
        }
    }
}

#[test]
fn the_older_form_of_remote_authentication_is_rewritten_in_the_newer() {
    let older = document(&directory().join("older/remote-auth.json"));
    let newer = document(&directory().join("older/remote-auth.rewritten.json"));
    assert_eq!(rewritten(&older), newer);
    assert_eq!(rewritten(&newer), newer);
}

#[test]
fn what_the_operator_writes_is_normalised_already() {
    for (name, document) in documents() {
        if document["container_labels"].is_object() {
            let config = RunConfig::from_json(&document.to_string()).unwrap();
            assert_eq!(serde_json::to_value(config).unwrap(), document, "{name}");
        }
    }
}

/// The members whose objects are maps from names to texts; nothing else fits into them.
const MAPS_OF_TEXTS: [&str; 9] = [
    "add_headers_from_secret",
    "add_plaintext_headers",
    "additional_authorization_params",
    "additional_headers",
    "container_labels",
    "customAttributes",
    "env_vars",
    "headers",
    "oauth_params",
];
/// The members whose objects are maps from names to objects.
const MAPS_OF_OBJECTS: [&str; 1] = ["tools_override"];

/// Puts the members into every object of the document that may have members of any name, and counts these objects.
fn insert_everywhere(value: &mut Value, name: &str, members: &Map<String, Value>) -> usize {
    match value {
        Value::Object(_) if MAPS_OF_TEXTS.contains(&name) => 0,
        Value::Object(object) => {
            let below: usize = object.iter_mut().map(|(name, member)| insert_everywhere(member, name, members)).sum();
            if MAPS_OF_OBJECTS.contains(&name) {
                return below;
            }
            object.extend(members.clone());
            below + 1
        }
        Value::Array(items) => items.iter_mut().map(|item| insert_everywhere(item, "", members)).sum(),
        _ => 0,
    }
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300_f64).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(".{0,6}", inner, 0..4).prop_map(|members| Value::from(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unknown_members_survive_at_every_level(members in btree_map("x_.{0,8}", arbitrary_json(), 1..4)) {
        let members = Map::from_iter(members);
        for (name, mut document) in documents() {
            let objects = insert_everywhere(&mut document, "", &members);
            prop_assert!(objects > 1, "{}", name);
            prop_assert_eq!(&rewritten(&document), &document, "{}", name);
            let strangers = strangers(&read::<RunConfig>(document).unwrap());
            prop_assert!(strangers.len() > members.len(), "{}: {:?}", name, strangers);
        }
    }
}

#[test]
fn trap_58_a_document_that_is_printed_shows_no_values() {
    let step = |type_: &str, parameters: Value| json!({ "type": type_, "parameters": parameters });
    let collector = json!({ "headers": { "X-Key": "hunter2" } });
    let exchange = json!({ "client_secret": "hunter2" });
    let document = json!({
        "header_forward": { "add_plaintext_headers": { "X-Key": "hunter2" } },
        "telemetry_config": collector,
        "oidc_config": { "ClientSecret": "hunter2" },
        "token_exchange_config": exchange,
        "remote_auth_config": { "bearer_token": "hunter2", "client_secret": "hunter2" },
        "env_vars": { "KEY": "hunter2" },
        "middleware_configs": [
            step("header-forward", json!({ "add_headers": { "X-Key": "hunter2" } })),
            step("telemetry", json!({ "config": collector })),
            step("tokenexchange", json!({ "token_exchange_config": exchange })),
        ],
        "additional_middleware_configs": [step("obo", json!({ "clientSecret": "hunter2" }))],
    });
    let config: RunConfig = read(document).unwrap();
    let steps = config.middleware_configs.iter().map(|step| match step.type_.as_str() {
        "header-forward" => format!("{:?}", step.read_parameters::<HeaderForwardParameters>().unwrap()),
        "telemetry" => format!("{:?}", step.read_parameters::<TelemetryParameters>().unwrap()),
        _ => format!("{:?}", step.read_parameters::<TokenExchangeParameters>().unwrap()),
    });
    let printed: String = steps.chain([format!("{config:?} {config:#?}")]).collect();
    assert!(printed.contains("X-Key") && !printed.contains("hunter2"), "{printed}");
}
