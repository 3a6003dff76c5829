//! Credentials for servers from end to end: what is written in an MCPExternalAuthConfig is what a server is shown.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::place::{Place, object};
use crate::protected::{self, Client, first_word};

const ENDPOINTS: &str = include_str!("endpoints.py");
const NAME: &str = "endpoints";
const KEYS: &str = "endpoint-keys";
pub(crate) const ENDPOINTS_URL: &str = "https://endpoints.default.svc.cluster.local:8443";

/// A server that tells how it was called, and everybody who gives credentials for it.
pub(crate) fn endpoints() -> Vec<Value> {
    protected::python(NAME, ENDPOINTS, KEYS)
}

/// A proxy before the endpoints, that trusts their authority. They speak both transports.
pub(crate) fn remote_proxy(name: &str, mut spec: Value) -> Value {
    let trusted = json!([{"name": "trusted", "mountPath": "/trusted"}]);
    spec["podTemplateSpec"] = json!({"spec": {"containers": [{"name": "toolhive", "volumeMounts": trusted}],
        "volumes": [{"name": "trusted", "secret": {"secretName": KEYS, "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}});
    let env = json!([{"name": "SSL_CERT_FILE", "value": "/trusted/ca.crt"},
        {"name": "AWS_ENDPOINT_URL_STS", "value": format!("{ENDPOINTS_URL}/sts")}]);
    spec["resourceOverrides"] = json!({"proxyDeployment": {"env": env}});
    let path = if spec["transport"] == "sse" { "sse" } else { "mcp" };
    spec["remoteUrl"] = json!(format!("{ENDPOINTS_URL}/{path}"));
    spec["allowPrivateEndpoint"] = json!(true);
    spec["proxyPort"] = json!(8080);
    object("MCPRemoteProxy", name, &spec)
}

/// The same as a server of ours, before which a proxy trusts the authorities in this file.
pub(crate) fn own_server(name: &str, authorities: &str, mut spec: Value) -> Value {
    let script = json!([{"name": "script", "mountPath": "/endpoints/script"}]);
    let container = json!({"name": "mcp", "imagePullPolicy": "IfNotPresent", "volumeMounts": script});
    spec["podTemplateSpec"] = json!({"spec": {"containers": [container],
        "volumes": [{"name": "script", "configMap": {"name": NAME}}]}});
    let env = json!([{"name": "SSL_CERT_FILE", "value": authorities}]);
    spec["resourceOverrides"] = json!({"proxyDeployment": {"env": env}});
    spec["image"] = json!("shell");
    spec["args"] = json!([format!("exec python3 /{NAME}/script/{NAME}.py")]);
    spec["proxyPort"] = json!(8080);
    object("MCPServer", name, &spec)
}

/// The kinds of credentials, by the names of what says how to get them, and that itself.
pub(crate) fn credentials() -> [(&'static str, Value); 3] {
    // The endpoint says who asked by this value.
    let secret = json!({"name": KEYS, "key": "hmac"});
    let arn = |role: &str| format!("arn:aws:iam::123456789012:role/{role}");
    let exchange = json!({"type": "tokenExchange", "tokenExchange": exchange()});
    let acting = json!({"type": "obo", "obo": {"authority": ENDPOINTS_URL, "audience": "backend", "clientId": "actor",
        "clientSecretRef": secret, "scopes": ["write"], "cacheSkew": "1m"}});
    let signing = json!({"type": "awsSts", "awsSts": {"region": "eu-central-1", "fallbackRoleArn": arn("visitor"),
        "roleMappings": [{"claim": "keepers", "roleArn": arn("keeper")},
            {"matcher": "claims.sub == 'helper'", "roleArn": arn("helper"), "priority": 1}]}});
    [("exchanged", exchange), ("acting", acting), ("signed", signing)]
        .map(|(name, spec)| (name, object("MCPExternalAuthConfig", name, &spec)))
}

fn exchange() -> Value {
    let secret = json!({"name": KEYS, "key": "hmac"});
    json!({"tokenUrl": format!("{ENDPOINTS_URL}/token"), "audience": "backend", "clientId": "exchanger",
        "clientSecretRef": secret, "scopes": ["read"]})
}

/// What says that a token that was exchanged comes in a header of its own.
pub(crate) fn aside() -> Value {
    let mut exchange = exchange();
    exchange["externalTokenHeaderName"] = json!("X-Upstream-Token");
    object("MCPExternalAuthConfig", "aside", &json!({"type": "tokenExchange", "tokenExchange": exchange}))
}

/// What a server is shown instead of somebody's token, by the name of the credential.
pub(crate) fn given(credential: &str, token: &str) -> String {
    let subject = digest(token);
    match credential {
        "exchanged" => format!("Bearer exchanger:a+key%0A - {subject} backend read"),
        _ => format!("Bearer actor:a+key%0A we {subject} backend write"),
    }
}

/// What whoever gives credentials for a token calls it.
pub(crate) fn digest(token: &str) -> String {
    hex::encode(Sha256::digest(token))
}

/// The headers with which a server was called for a client whose token it is not shown.
pub(crate) fn shown(client: &Client<'_>, token: &str) -> Value {
    let (status, answer) = client.call("headers", &json!({}));
    assert_eq!(status, 200, "{answer}");
    assert!(!answer.to_string().contains(token), "it has the caller's own token: {answer}");
    answer["result"]["structuredContent"].clone()
}

/// Whether a request was signed with the credentials of a role, which were given for a session of this name.
pub(crate) fn is_signed(headers: &Value, token: &str, session: &str, role: &str) {
    let authorization = headers["authorization"].as_str().unwrap_or_default();
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=KEY/"), "{authorization}");
    assert!(authorization.contains("/eu-central-1/aws-mcp/aws4_request, SignedHeaders="), "{authorization}");
    assert_eq!(headers["is signed"], true, "{headers}");
    let given = format!("{} as {session} in arn:aws:iam::123456789012:role/{role}", digest(token));
    assert_eq!(headers["x-amz-security-token"], given);
}

/// Each kind of credential, for callers who are local users with tokens.
pub(crate) async fn check(place: &Place) {
    for object in endpoints() {
        place.apply(&object).await;
    }
    let mut proxies = Vec::new();
    for (name, config) in credentials() {
        place.apply(&config).await;
        let proxy = remote_proxy(name, json!({"externalAuthConfigRef": {"name": name}}));
        let address = place.serve(&proxy).await;
        proxies.push((proxy, address));
    }
    for (proxy, address) in &proxies {
        place.until_served(proxy, address, Some("early")).await;
    }
    for token in ["the token of ann", "the token of bob"] {
        let told = proxies.iter().map(|(_, address)| shown(&Client::begin_as(address, Some(token)).unwrap(), token));
        let told: Vec<Value> = told.collect();
        assert_eq!(told[0]["authorization"], given("exchanged", token));
        assert_eq!(told[1]["authorization"], given("acting", token));
        let session = told[2]["x-amz-security-token"].as_str().unwrap_or_default();
        let user = session.split(' ').nth(2).unwrap_or_default();
        is_signed(&told[2], token, user, "visitor");
    }
    // Nobody is called for who cannot be named.
    for (_, address) in &proxies[1..] {
        let mut refused = first_word(None).send(address);
        assert_eq!((refused.status, refused.text().trim()), (401, "Bearer token required"));
    }
}
