//! Credentials for servers from end to end: what is written in an MCPExternalAuthConfig is what a server is shown.

use serde_json::{Value, json};

use super::http::Request;
use super::machine::{Machine, eventually};
use super::mcp::{answer, has_proxy, initialize, request};
use super::protected;
use super::servers::object;
use skep_conformance::ports::free_port;

const ENDPOINTS: &str = include_str!("../outgoing/endpoints.py");
const NAME: &str = "endpoints";
const KEYS: &str = "endpoint-keys";
const URL: &str = "https://endpoints.default.svc.cluster.local:8443";

/// The specs of the credentials, by the names of their proxies.
fn credentials() -> [(&'static str, Value); 3] {
    // The endpoint says who asked by this value.
    let secret = json!({"name": KEYS, "key": "hmac"});
    [
        (
            "exchanged",
            json!({"type": "tokenExchange", "tokenExchange": {"tokenUrl": format!("{URL}/token"), "audience": "backend",
                "clientId": "exchanger", "clientSecretRef": secret, "scopes": ["read"]}}),
        ),
        (
            "acting",
            json!({"type": "obo", "obo": {"authority": URL, "audience": "backend", "clientId": "actor",
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

/// A proxy before the endpoints, that trusts their authority; its address on this machine.
async fn serve(machine: &Machine, name: &str, credentials: &Value) -> String {
    let port = free_port().unwrap();
    let trusted = json!([{"name": "trusted", "mountPath": "/trusted"}]);
    let pod = json!({"spec": {"containers": [{"name": "toolhive", "volumeMounts": trusted}],
        "volumes": [{"name": "trusted", "secret": {"secretName": KEYS, "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}});
    let env = json!([{"name": "SSL_CERT_FILE", "value": "/trusted/ca.crt"},
        {"name": "AWS_ENDPOINT_URL_STS", "value": format!("{URL}/sts")}]);
    let spec = json!({"remoteUrl": format!("{URL}/mcp"), "allowPrivateEndpoint": true, "proxyPort": port,
        "externalAuthConfigRef": {"name": name}, "podTemplateSpec": pod,
        "resourceOverrides": {"proxyDeployment": {"env": env}}});
    machine.apply(&object("MCPExternalAuthConfig", name, credentials)).await;
    machine.apply(&object("MCPRemoteProxy", name, &spec)).await;
    format!("127.0.0.1:{port}")
}

fn ask(address: &str, message: &Value, token: &str) -> super::http::Response {
    let post = Request::post(message).header("Authorization", &format!("Bearer {token}"));
    post.header("MCP-Protocol-Version", "2025-06-18").send(address)
}

/// The headers with which the server was called for somebody.
fn told(address: &str, token: &str) -> Value {
    let call = request(2, "tools/call", &json!({"name": "headers", "arguments": {}}));
    answer(ask(address, &call, token))["result"]["structuredContent"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_shown_credentials_of_its_own() {
    let Some(machine) = Machine::start_or_skip("a_server_is_shown_credentials_of_its_own").await else { return };
    machine.until_installed().await;
    for object in protected::python(NAME, ENDPOINTS, KEYS) {
        machine.apply(&object.to_string()).await;
    }
    let mut addresses = Vec::new();
    for (name, spec) in credentials() {
        addresses.push(serve(&machine, name, &spec).await);
    }
    for address in &addresses {
        eventually(&format!("{address} is served"), || async {
            has_proxy(address).map_err(|error| format!("{error}\n{}", machine.said()))?;
            let mut response = ask(address, &initialize(), "early");
            let status = response.status;
            if status == 200 { Ok(()) } else { Err(format!("{status}: {}", response.text())) }
        })
        .await;
    }
    for token in ["ann", "bob"] {
        let told = [told(&addresses[0], token), told(&addresses[1], token), told(&addresses[2], token)];
        let authorization = told.each_ref().map(|headers| headers["authorization"].as_str().unwrap_or_default());
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
    for (address, told) in [(&addresses[1], "Bearer token required"), (&addresses[2], "Bearer token required")] {
        let mut refused = Request::post(&initialize()).send(address);
        assert_eq!((refused.status, refused.text().trim()), (401, told));
    }
}
