//! Credentials for servers from end to end: what is written in an MCPExternalAuthConfig is what a server is shown.

use serde_json::{Value, json};

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

/// A proxy before the endpoints, that trusts their authority.
pub(crate) fn remote_proxy(name: &str, mut spec: Value) -> Value {
    let trusted = json!([{"name": "trusted", "mountPath": "/trusted"}]);
    spec["podTemplateSpec"] = json!({"spec": {"containers": [{"name": "toolhive", "volumeMounts": trusted}],
        "volumes": [{"name": "trusted", "secret": {"secretName": KEYS, "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}});
    let env = json!([{"name": "SSL_CERT_FILE", "value": "/trusted/ca.crt"},
        {"name": "AWS_ENDPOINT_URL_STS", "value": format!("{ENDPOINTS_URL}/sts")}]);
    spec["resourceOverrides"] = json!({"proxyDeployment": {"env": env}});
    spec["remoteUrl"] = json!(format!("{ENDPOINTS_URL}/mcp"));
    spec["allowPrivateEndpoint"] = json!(true);
    spec["proxyPort"] = json!(8080);
    object("MCPRemoteProxy", name, &spec)
}

/// The specs of the credentials, by the names of their proxies.
fn credentials() -> [(&'static str, Value); 3] {
    // The endpoint says who asked by this value.
    let secret = json!({"name": KEYS, "key": "hmac"});
    [
        (
            "exchanged",
            json!({"type": "tokenExchange", "tokenExchange": {"tokenUrl": format!("{ENDPOINTS_URL}/token"),
                "audience": "backend", "clientId": "exchanger", "clientSecretRef": secret, "scopes": ["read"]}}),
        ),
        (
            "acting",
            json!({"type": "obo", "obo": {"authority": ENDPOINTS_URL, "audience": "backend", "clientId": "actor",
                "clientSecretRef": secret, "scopes": ["write"], "cacheSkew": "1m"}}),
        ),
        (
            "signed",
            json!({"type": "awsSts", "awsSts": {"region": "eu-central-1",
                "fallbackRoleArn": "arn:aws:iam::123456789012:role/keeper",
                "roleMappings": [{"claim": "admins", "roleArn": "arn:aws:iam::123456789012:role/admin"}]}}),
        ),
    ]
}

/// The headers with which a server was called for somebody.
pub(crate) fn shown(address: &str, token: &str) -> Value {
    let client = Client::begin_as(address, Some(token)).unwrap();
    let (status, answer) = client.call("headers", &json!({}));
    assert_eq!(status, 200, "{answer}");
    answer["result"]["structuredContent"].clone()
}

/// Each kind of credential, for callers who are local users with tokens.
pub(crate) async fn check(place: &Place) {
    for object in endpoints() {
        place.apply(&object).await;
    }
    let mut proxies = Vec::new();
    for (name, spec) in credentials() {
        place.apply(&object("MCPExternalAuthConfig", name, &spec)).await;
        let proxy = remote_proxy(name, json!({"externalAuthConfigRef": {"name": name}}));
        let address = place.serve(&proxy).await;
        proxies.push((proxy, address));
    }
    for (proxy, address) in &proxies {
        place.until_served(proxy, address, Some("early")).await;
    }
    for token in ["ann", "bob"] {
        let told: Vec<Value> = proxies.iter().map(|(_, address)| shown(address, token)).collect();
        let authorization: Vec<_> =
            told.iter().map(|headers| headers["authorization"].as_str().unwrap_or_default()).collect();
        assert_eq!(authorization[0], format!("Bearer exchanger:a+key%0A - {token} backend read"));
        assert_eq!(authorization[1], format!("Bearer actor:a+key%0A we {token} backend write"));
        let scope = "/eu-central-1/aws-mcp/aws4_request, SignedHeaders=";
        assert!(authorization[2].starts_with("AWS4-HMAC-SHA256 Credential=KEY/"), "{}", authorization[2]);
        assert!(authorization[2].contains(scope), "{}", authorization[2]);
        let session = told[2]["x-amz-security-token"].as_str().unwrap_or_default();
        assert!(session.starts_with(&format!("{token} as ")), "{session}");
        assert!(session.ends_with(" in arn:aws:iam::123456789012:role/keeper"), "{session}");
    }
    // Nobody is called for who cannot be named.
    for (_, address) in &proxies[1..] {
        let mut refused = first_word(None).send(address);
        assert_eq!((refused.status, refused.text().trim()), (401, "Bearer token required"));
    }
}
