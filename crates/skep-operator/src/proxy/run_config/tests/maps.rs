//! The ConfigMaps around the documents, and the Secrets that must exist.

use serde_json::{Value, json};
use skep_api::hash::sha256_hex;

use super::super::{Need, NeededSecret, checksum, config_map, inline_authz, needed_secrets};
use super::{Case, found, proxy, server};

fn map(case: &Value) -> Value {
    let case = Case::read(case);
    serde_json::to_value(config_map(&case.inputs(), &case.build().unwrap())).unwrap()
}

#[test]
fn a_run_config_has_its_name_labels_and_checksum() {
    let map = map(&server(&json!({})));
    let text = map["data"]["runconfig.json"].as_str().unwrap();
    assert!(text.starts_with("{\n  \"base_name\": \"weather\",\n"), "{text}");
    let content = format!(
        "runconfig.json{text}toolhive.stacklok.io/componentrun-config\
         toolhive.stacklok.io/managed-bytoolhive-operatortoolhive.stacklok.io/mcp-serverweather"
    );
    let expected = json!({
        "name": "weather-runconfig",
        "namespace": "tools",
        "labels": {
            "toolhive.stacklok.io/component": "run-config",
            "toolhive.stacklok.io/managed-by": "toolhive-operator",
            "toolhive.stacklok.io/mcp-server": "weather",
        },
        "annotations": { "toolhive.stacklok.dev/content-checksum": sha256_hex(content.as_bytes()) },
    });
    assert_eq!(map["metadata"], expected);
}

#[test]
fn a_remote_proxy_has_its_own_label() {
    let labels = &map(&proxy(&json!({})))["metadata"]["labels"];
    assert_eq!(labels["toolhive.stacklok.io/mcp-remote-proxy"], "github");
    assert_eq!(labels["toolhive.stacklok.io/mcp-server"], Value::Null);
}

#[test]
fn the_checksum_follows_the_content_and_nothing_else() {
    let sum = |case: Value| {
        let case = Case::read(&case);
        checksum(&config_map(&case.inputs(), &case.build().unwrap())).to_owned()
    };
    let base = sum(server(&json!({})));
    assert_eq!(base.len(), 64);
    let mut relabelled = server(&json!({}));
    relabelled["object"]["metadata"]["labels"] = json!({ "team": "sky" });
    assert_eq!(base, sum(relabelled));
    let mut newer = server(&json!({}));
    newer["object"]["metadata"]["generation"] = json!(4);
    assert_ne!(base, sum(newer), "every change of the spec rolls the pods");
    let tools = |tool: &str| {
        sum(found(server(&json!({ "toolConfigRef": { "name": "c" } })), "tools", &json!({ "toolsFilter": [tool] })))
    };
    assert_ne!(tools("a"), tools("b"), "a change of a named object rolls the pods");
    assert_eq!(checksum(&k8s_openapi::api::core::v1::ConfigMap::default()), "");
}

#[test]
fn inline_policies_are_mounted_without_their_claims() {
    let inline = json!({ "policies": ["permit(principal, action, resource);"], "entitiesJson": "" });
    let authz = json!({ "authzConfig": { "type": "inline", "inline": inline, "groupClaimName": "groups" } });
    let case = Case::read(&server(&authz));
    let map = serde_json::to_value(inline_authz(&case.inputs()).unwrap()).unwrap();
    assert_eq!(map["metadata"]["name"], "weather-authz-inline");
    let labels = json!({
        "app": "mcpserver",
        "app.kubernetes.io/instance": "weather",
        "app.kubernetes.io/name": "mcpserver",
        "toolhive": "true",
        "toolhive-name": "weather",
        "toolhive.stacklok.io/authz": "inline",
    });
    assert_eq!(map["metadata"]["labels"], labels);
    let text = r#"{"cedar":{"entities_json":"[]","policies":["permit(principal, action, resource);"]},"type":"cedarv1","version":"1.0"}"#;
    assert_eq!(map["data"], json!({ "authz.json": text }));

    let labels = inline_authz(&Case::read(&proxy(&authz)).inputs()).unwrap().metadata.labels.unwrap();
    assert_eq!(labels["app"], "mcpremoteproxy");
    for spec in [json!({}), json!({ "authzConfig": { "configMap": { "name": "policies" } } })] {
        assert_eq!(inline_authz(&Case::read(&server(&spec)).inputs()), None);
    }
}

#[test]
fn secrets_that_the_proxy_cannot_do_without_are_listed() {
    let secret = json!({ "name": "s", "key": "k" });
    let outgoing =
        |spec: Value| found(server(&json!({ "externalAuthConfigRef": { "name": "c" } })), "externalAuth", &spec);
    let exchange = json!({ "tokenUrl": "https://t", "audience": "a", "clientSecretRef": secret });
    let sign_in = json!({ "oidcConfigRef": { "name": "c", "audience": "a" } });
    let oidc = json!({ "type": "inline", "inline": { "issuer": "https://i", "clientSecretRef": secret } });
    for (case, needs) in [
        (server(&json!({})), vec![]),
        (outgoing(json!({ "type": "tokenExchange", "tokenExchange": exchange })), vec![Need::TokenExchangeClient]),
        (outgoing(json!({ "type": "obo", "obo": { "clientSecretRef": secret } })), vec![Need::OnBehalfOfClient]),
        (outgoing(json!({ "type": "obo", "obo": {} })), vec![]),
        (
            outgoing(json!({ "type": "bearerToken", "bearerToken": { "tokenSecretRef": secret } })),
            vec![Need::BearerToken],
        ),
        (outgoing(json!({ "type": "unauthenticated" })), vec![]),
        (found(server(&sign_in), "oidc", &oidc), vec![Need::OidcClient]),
        (found(server(&json!({})), "oidc", &oidc), vec![]),
    ] {
        let listed = needed_secrets(&Case::read(&case).inputs());
        assert!(listed.iter().all(|needed| needed.name == "s" && needed.key == "k"), "{case}");
        assert_eq!(listed.iter().map(|needed| needed.why).collect::<Vec<_>>(), needs, "{case}");
    }
}

#[test]
fn a_missing_secret_is_told_by_name_and_key() {
    let case = Case::read(&server(&json!({})));
    let needed = NeededSecret { name: "s".into(), key: "k".into(), why: Need::TokenExchangeClient };
    let prefix = "failed to create RunConfig from MCPServer: ";
    let remedy = "correct tokenExchange.clientSecretRef of the MCPExternalAuthConfig";
    let missing = needed.is_missing(&case.inputs()).to_string();
    let expected = "failed to get client secret tools/s: it does not exist; create it, or";
    assert_eq!(missing, format!("{prefix}{expected} {remedy}"));
    let lacks = needed.lacks_key(&case.inputs()).to_string();
    assert_eq!(lacks, format!("{prefix}client secret tools/s is missing key \"k\"; add it, or {remedy}"));
}
