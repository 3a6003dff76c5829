//! Whatever the operator accepts, the proxy starts with. What it would not start with is told in a condition instead, and
//! no pod crashes.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use skep_api::config::run_config::RunConfig;
use skep_api::config::strangers::strangers;
use skep_api::kinds::MCPServer;
use skep_operator::config::ConfigKind;
use skep_operator::proxy::{Inputs, Proxied as _, Resolved, run_config};
use skep_operator::settings::ProxySettings;

use super::{chain, sections};

/// The manifests of a server that have a text in one place: its `spec`, and the specs of what it names.
type Written = fn(&str) -> Value;
/// Texts, and where they may stand.
type Table = (&'static [&'static str], &'static [(&'static str, Written)]);

const ADDRESSES: [&str; 38] = [
    "https://hive.example",
    "https://hive.example/path?query=1",
    "HTTPS://Hive.Example:8443/",
    "http://hive.example/",
    "https://hive.apiary.svc.cluster.local:8443",
    "https://1.1.1.1/",
    "https://10.0.0.5",
    "http://10.0.0.5",
    "https://127.0.0.1:9000",
    "https://192.168.1.1/keys",
    "https://[::1]/",
    "https://[fd00::1]/",
    "https://[fd00:ec2::23]/",
    "https://[2606:4700::1111]/",
    "http://169.254.169.254/",
    "https://169.254.169.254",
    "https://169.254.170.2",
    "https://[fe80::1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[fd00:ec2::254]/",
    "https://0.0.0.0/",
    "https://2852039166/",
    "https://user:hunter2@hive.example/",
    "https://@hive.example/",
    "https:/hive.example",
    "https:\\\\hive.example",
    "https://hive.example/a b",
    "https://hive.example/\t",
    "https://b\u{fc}cher.example/",
    "https://hive.example/h\u{f6}nig",
    "https://hive example/",
    "https://hive.example:99999/",
    "https://hive.example#part",
    "ftp://hive.example",
    "https://",
    "hive.example",
    "hive.example:4318",
    "otel?x=1",
];

const HEADERS: [&str; 18] = [
    "X-Token",
    "Authorization",
    "x-token!",
    "Host",
    "Content-Length",
    "X-Forwarded-For",
    "http2-settings",
    "Accept",
    "Content-Type",
    "Content-Encoding",
    "Expect",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "MCP-Protocol-Version",
    "mcp-session-id",
    "a b",
    "X:Token",
];

const VALUES: [&str; 6] = ["bees", "", "a b\tc", "h\u{f6}nig", "hunter2\n", "a\u{7f}"];
const TYPES: [&str; 9] = ["", "Team", "Team_2", "Hive::Team", "my team", "2nd", "if", "__cedar", "::"];
const TOOLS: [&str; 4] = ["", "weigh", "shown", "a b"];

fn oidc(inline: &Value) -> Value {
    json!({"spec": {"oidcConfigRef": {"name": "c", "audience": "a"}}, "oidc": {"type": "inline", "inline": inline}})
}

fn outgoing(type_: &str, settings: &Value) -> Value {
    json!({"spec": {"externalAuthConfigRef": {"name": "c"}}, "external_auth": {"type": type_, type_: settings}})
}

fn authorized(type_: &str, config: &Value) -> Value {
    json!({"spec": {"authzConfigRef": {"name": "c"}}, "authz": {"type": type_, "config": config}})
}

fn asked(webhook: &Value) -> Value {
    json!({"spec": {"webhookConfigRef": {"name": "c"}}, "webhooks": {"mutating": [webhook]}})
}

fn told(telemetry: &Value) -> Value {
    let mut all = json!({"enabled": true, "endpoint": "collector:4318", "tracing": {"enabled": true}});
    all.as_object_mut().unwrap().extend(telemetry.as_object().unwrap().clone());
    json!({"spec": {"telemetryConfigRef": {"name": "c"}}, "telemetry": {"openTelemetry": all}})
}

const PLACES_OF_ADDRESSES: [(&str, Written); 14] = [
    ("an issuer", |text| oidc(&json!({"issuer": text}))),
    ("an issuer that may be private", |text| oidc(&json!({"issuer": text, "jwksAllowPrivateIP": true}))),
    ("an issuer without TLS", |text| oidc(&json!({"issuer": text, "insecureAllowHTTP": true}))),
    ("an issuer that is not asked", |text| oidc(&json!({"issuer": text, "jwksUrl": "https://keys.example"}))),
    ("an issuer in the cluster", |text| {
        let cluster = json!({"issuer": text, "useClusterAuth": false});
        json!({"spec": {"oidcConfigRef": {"name": "c", "audience": "a"}},
            "oidc": {"type": "kubernetesServiceAccount", "kubernetesServiceAccount": cluster}})
    }),
    ("keys", |text| oidc(&json!({"issuer": "https://i.example", "jwksUrl": text}))),
    ("introspection", |text| oidc(&json!({"issuer": "https://i.example", "introspectionUrl": text}))),
    ("a resource", |text| {
        let mut written = oidc(&json!({"issuer": "https://i.example"}));
        written["spec"]["oidcConfigRef"]["resourceUrl"] = json!(text);
        written
    }),
    ("a webhook", |text| asked(&json!({"name": "w", "url": text}))),
    ("a webhook without TLS", |text| {
        asked(&json!({"name": "w", "url": text, "tlsConfig": {"insecureSkipVerify": true}}))
    }),
    ("an exchange", |text| outgoing("tokenExchange", &json!({"tokenUrl": text, "audience": "a"}))),
    ("an authority", |text| outgoing("obo", &json!({"authority": text}))),
    ("a decision point", |text| authorized("httpv1", &json!({"http": {"url": text}, "claim_mapping": "mpe"}))),
    ("a collector", |text| told(&json!({"endpoint": text}))),
];

const PLACES_OF_HEADERS: [(&str, Written); 2] = [
    ("an exchanged token", |text| {
        let settings = json!({"tokenUrl": "https://t.example", "audience": "a", "externalTokenHeaderName": text});
        outgoing("tokenExchange", &settings)
    }),
    ("a header for the collector", |text| told(&json!({"headers": {text: "v"}}))),
];

const PLACES_OF_VALUES: [(&str, Written); 1] =
    [("a value for the collector", |text| told(&json!({"headers": {"X-Team": text}})))];

const PLACES_OF_TYPES: [(&str, Written); 1] = [("the type of groups", |text| {
    authorized("cedarv1", &json!({"policies": ["permit(principal, action, resource);"], "group_entity_type": text}))
})];

const PLACES_OF_TOOLS: [(&str, Written); 2] = [
    ("the name of a tool", |text| {
        let shown = json!({"one": {"name": text}, "other": {"name": "shown", "description": "Shown."}});
        json!({"spec": {"toolConfigRef": {"name": "c"}}, "tools": {"toolsOverride": shown}})
    }),
    (
        "a tool that is shown",
        |text| json!({"spec": {"toolConfigRef": {"name": "c"}}, "tools": {"toolsFilter": [text]}}),
    ),
];

/// The document that the operator writes, or what it says instead.
fn accepted(written: &Value) -> Result<RunConfig, String> {
    let resolved = Resolved {
        authz: valid(&written["authz"])?,
        external_auth: valid(&written["external_auth"])?,
        oidc: valid(&written["oidc"])?,
        telemetry: valid(&written["telemetry"])?,
        tools: valid(&written["tools"])?,
        webhooks: valid(&written["webhooks"])?,
        ..Resolved::default()
    };
    let mut object = json!({"metadata": {"name": "hive", "namespace": "apiary"}, "spec": written["spec"]});
    object["spec"]["image"] = json!("hive");
    let server: MCPServer = serde_json::from_value(object).unwrap();
    let settings = ProxySettings::default();
    let inputs = Inputs { common: server.common(), target: server.target(), resolved: &resolved, settings: &settings };
    run_config::build(&inputs).map_err(|error| error.to_string())
}

fn valid<K: ConfigKind + DeserializeOwned>(spec: &Value) -> Result<Option<K>, String> {
    if spec.is_null() {
        return Ok(None);
    }
    let object: K = serde_json::from_value(json!({"metadata": {"name": "c"}, "spec": spec})).unwrap();
    object.validate().map_err(|complaint| complaint.to_string())?;
    Ok(Some(object))
}

#[tokio::test]
async fn whatever_the_operator_accepts_the_proxy_starts_with() {
    let tables: [Table; 5] = [
        (&ADDRESSES, &PLACES_OF_ADDRESSES),
        (&HEADERS, &PLACES_OF_HEADERS),
        (&VALUES, &PLACES_OF_VALUES),
        (&TYPES, &PLACES_OF_TYPES),
        (&TOOLS, &PLACES_OF_TOOLS),
    ];
    for (texts, places) in tables {
        for (place, written) in places {
            let mut started = 0;
            for text in texts {
                let Ok(config) = accepted(&written(text)) else { continue };
                let config = RunConfig::from_json(&config.to_json()).unwrap();
                assert!(sections::check(&config).is_ok(), "{place}: {text:?}");
                let chain = chain::build(&config, &|_| None).await;
                chain.unwrap_or_else(|error| panic!("{place}: the operator accepts {text:?}, but {error}"));
                started += 1;
            }
            assert!((1..texts.len()).contains(&started), "{place}: {started} of {} are accepted", texts.len());
        }
    }
}

/// The layers of the example, outermost first.
const LAYERED: [&str; 5] = ["audit", "auth", "ratelimit", "validating-webhook", "authorization"];

#[test]
fn the_example_with_every_layer_is_accepted() {
    let documents: Vec<Value> = serde_saphyr::from_multiple(include_str!("../../../../examples/layers.yaml")).unwrap();
    let spec = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap()["spec"].clone();
    let written = json!({"spec": spec("MCPServer"), "oidc": spec("MCPOIDCConfig"), "authz": spec("MCPAuthzConfig"),
        "webhooks": spec("MCPWebhookConfig")});
    let config = accepted(&written).unwrap();
    let steps: Vec<&str> = config.middleware_configs.iter().map(|step| step.type_.as_str()).collect();
    let places: Vec<_> = LAYERED.iter().map(|layer| steps.iter().position(|step| step == layer)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{steps:?}");
    assert_eq!(strangers(&config), []);
}
