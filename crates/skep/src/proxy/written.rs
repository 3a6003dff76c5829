//! What the operator writes, read by what reads it in a pod: every golden document of the operator becomes a chain.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use skep_api::config::run_config::middleware::AuthParameters;
use skep_api::config::run_config::{MiddlewareConfig, MiddlewareType, RunConfig};
use skep_api::config::strangers::strangers;
use skep_api::names::env::runner;
use skep_conformance::redis::{PASSWORD, RedisServer};
use skep_node::container::{POD_ADDRESS_VARIABLE, VOLUME_ROOT_VARIABLE};

use super::{chain, sections};

/// The Redis of the documents, which is to be one that is there.
const REDIS: &str = "redis.tools:6379";
/// Where the operator mounts files.
const MOUNTED: [&str; 3] = ["/config/", "/etc/toolhive/", "/var/run/"];

/// Documents that are not served, and what is said about them.
const REFUSED: [(&str, &str); 8] = [
    ("proxy-auth-server-and-aws-sts", AUTH_SERVER),
    ("server-auth-server", AUTH_SERVER),
    ("server-auth-server-at-its-service", AUTH_SERVER),
    ("server-auth-server-everything", AUTH_SERVER),
    ("server-auth-server-oauth2", AUTH_SERVER),
    ("server-auth-server-registers-itself", AUTH_SERVER),
    ("server-auth-server-strips-tokens", AUTH_SERVER),
    ("server-everything", AUTH_SERVER),
];
const AUTH_SERVER: &str = "embedded_auth_server_config (auth server)";

/// What else has to be in the chains of some documents, in this order.
const SAID: [(&str, &[&str]); 13] = [
    ("proxy-aws-sts", &["AwsSts", "eu-central-1", "aws-mcp"]),
    ("proxy-bearer-token", &["Parse", "authorization"]),
    ("proxy-headers", &["Parse", "x-tenant", "x-api-key"]),
    ("proxy-secret-headers-only", &["Parse", "x-api-key"]),
    ("server-all-steps", &["Audit", "Oidc", "TokenExchange", "Telemetry", "RateLimit", "Change", "Refuse", "Cedar"]),
    ("server-authz-cedar", &["Authorizer", "Cedar"]),
    ("server-authz-http", &["Authorizer", "Pdp"]),
    ("server-authz-inline", &["Authorizer", "Cedar"]),
    ("server-oidc-inline", &["Oidc", "https://login.example.com", "weather"]),
    ("server-oidc-service-account", &["Oidc", "https://kubernetes.default.svc", "weather"]),
    ("server-on-behalf-of", &["Parse", "OnBehalfOf", "backend", "read"]),
    ("server-rate-limits", &["Oidc", "RateLimit", "forecast"]),
    ("server-webhooks", &["Change", "redact", "Refuse", "my.policy"]),
];

/// The documents, by their names.
fn written() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skep-operator/src/proxy/run_config/golden");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let documents = files.filter_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
        // Their inputs are beside them.
        (!name.contains('.')).then(|| (name.to_owned(), fs::read_to_string(&path).unwrap()))
    });
    let documents: BTreeMap<String, String> = documents.collect();
    assert!(documents.len() > 30, "{}", documents.len());
    documents
}

/// What the layer of a step is called; nothing for what is no layer.
fn layer(step: &MiddlewareConfig) -> Option<&'static str> {
    Some(match &step.type_ {
        MiddlewareType::BodyLimit => return None,
        MiddlewareType::Audit => "Audit",
        MiddlewareType::Auth => match step.read_parameters::<AuthParameters>().unwrap().oidc_config {
            Some(_) => "Oidc",
            None => "Unproven",
        },
        MiddlewareType::TokenExchange => "TokenExchange",
        MiddlewareType::ToolFilter => "ToolLists",
        MiddlewareType::ToolCallFilter => "ToolCalls",
        MiddlewareType::McpParser => "Parse",
        MiddlewareType::Telemetry => "Telemetry",
        MiddlewareType::RateLimit => "RateLimit",
        MiddlewareType::MutatingWebhook | MiddlewareType::ValidatingWebhook => "Webhooks",
        MiddlewareType::Authorization => "Authorizer",
        MiddlewareType::AwsSts => "AwsSts",
        // The names of headers, in braces.
        MiddlewareType::HeaderForward => "{\"",
        MiddlewareType::Obo => "OnBehalfOf",
        MiddlewareType::Recovery => "Recovery",
        other => panic!("{other} has no layer here"),
    })
}

/// Puts a file wherever a document has the path of one.
fn mount(root: &Path, document: &Value, certificate: &str, key: &str) {
    match document {
        Value::Object(members) => members.values().for_each(|member| mount(root, member, certificate, key)),
        Value::Array(items) => items.iter().for_each(|item| mount(root, item, certificate, key)),
        Value::String(path) if MOUNTED.iter().any(|folder| path.starts_with(folder)) => {
            let file = root.join(path.trim_start_matches('/'));
            let content = match file.file_name().unwrap().to_str().unwrap() {
                "tls.key" => key,
                "token" | "hmac" => "a secret",
                _ => certificate,
            };
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        _ => {}
    }
}

/// Whether these words are there, in this order.
fn has_in_order<'a>(chain: &str, words: impl IntoIterator<Item = &'a str>) -> bool {
    let mut rest = chain;
    words.into_iter().all(|word| match rest.split_once(word) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn whatever_the_operator_writes_has_members_that_are_known() {
    for (name, text) in written() {
        let unknown = strangers(&RunConfig::from_json(&text).unwrap());
        // The policies of one are those of a user's ConfigMap, which has a member more.
        let expected = if name == "server-authz-config-map" { 2 } else { 0 };
        assert_eq!(unknown.len(), expected, "{name}: {unknown:?}");
        assert!(unknown.iter().all(|stranger| stranger.path.contains(".later")), "{name}: {unknown:?}");
    }
}

#[tokio::test]
async fn whatever_the_operator_writes_becomes_a_chain_in_its_order() {
    let Some(redis) = RedisServer::start("whatever_the_operator_writes_becomes_a_chain_in_its_order") else { return };
    let root = tempfile::tempdir().unwrap();
    let identity = rcgen::generate_simple_self_signed(["login.example.com".to_owned()]).unwrap();
    let (certificate, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    let find = |name: &str| match name {
        // Nothing here listens where others could reach it.
        POD_ADDRESS_VARIABLE => Some("127.0.0.1".to_owned()),
        VOLUME_ROOT_VARIABLE => Some(root.path().display().to_string()),
        runner::SESSION_REDIS_PASSWORD => Some(PASSWORD.to_owned()),
        runner::ON_BEHALF_OF_CLIENT_SECRET => Some("v".to_owned()),
        name => name.starts_with("TOOLHIVE_SECRET_").then(|| "v".to_owned()),
    };
    let mut documents = written();
    for (name, told) in REFUSED {
        let config = RunConfig::from_json(&documents.remove(name).unwrap()).unwrap();
        let said = match sections::check(&config) {
            Ok(()) => chain::build(&config, &find).await.map(drop).unwrap_err().to_string(),
            Err(refused) => refused.to_string(),
        };
        assert!(said.contains(told), "{name}: {said}");
    }
    for (name, text) in documents {
        let text = text.replace(REDIS, &redis.address());
        mount(root.path(), &serde_json::from_str(&text).unwrap(), &certificate, &key);
        let config = RunConfig::from_json(&text).unwrap();
        assert!(sections::check(&config).is_ok(), "{name}");
        let chain = chain::build(&config, &find).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let chain = format!("{chain:?}");
        assert!(has_in_order(&chain, config.middleware_configs.iter().filter_map(layer)), "{name}: {chain}");
        for (_, words) in SAID.iter().filter(|(of, _)| *of == name) {
            assert!(has_in_order(&chain, words.iter().copied()), "{name}: {words:?} in {chain}");
        }
        assert!(!chain.contains(PASSWORD) && !chain.contains("a secret"), "{name}: {chain}");
    }
}
