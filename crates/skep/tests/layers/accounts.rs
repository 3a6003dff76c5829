//! Service accounts of the cluster: whoever comes with a token of one is known by it.

use serde_json::json;

use super::add;
use super::callers::Callers;
use crate::http::Request;
use crate::place::{Place, eventually};
use crate::protected::{Client, first_word};
use crate::provider::AUDIENCE;

const ISSUER: &str = "https://kubernetes.default.svc";
/// What the server is for those who ask, as nothing else is said about it.
const RESOURCE: &str = "http://mcp-accounts-proxy.default.svc.cluster.local:8080";
/// What a pod says first, by the address that every pod knows.
const VISIT: &str = r#"curl -sS -w ' %{http_code}' -H "Authorization: Bearer $(cat /token/token)" \
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}' "$0""#;

/// Tokens of accounts.
pub(super) struct Accounts {
    pub(super) bee: String,
    drone: String,
    /// One for the API server itself.
    elsewhere: String,
}

impl Accounts {
    pub(super) async fn start(place: &Place) -> Self {
        for name in ["bee", "drone"] {
            place.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})).await;
        }
        Self {
            bee: place.token("bee", AUDIENCE).await,
            drone: place.token("drone", AUDIENCE).await,
            elsewhere: place.token("bee", ISSUER).await,
        }
    }
}

pub(super) async fn check(place: &Place, address: &str, accounts: &Accounts, callers: &Callers) {
    let bee = Client::begin_as(address, Some(&accounts.bee)).unwrap();
    assert_eq!(bee.tools(), ["add"]);
    assert_eq!(add(&bee, 2), (200, json!(5)));
    let drone = Client::begin_as(address, Some(&accounts.drone)).unwrap();
    assert_eq!((drone.tools().len(), add(&drone, 2).0), (0, 403), "any account is known, and policies say what it may");
    others_are_told_what_is_missing(address, accounts, callers);
    a_pod_comes_with_its_own_token(place).await;
}

fn others_are_told_what_is_missing(address: &str, accounts: &Accounts, callers: &Callers) {
    let forged = accounts.bee.chars().rev().collect::<String>();
    for (token, error, told) in [
        (None, "invalid_request", "authorization header required"),
        (Some(&accounts.elsewhere), "invalid_token", "invalid audience"),
        (Some(&callers.keeper), "invalid_token", "key ID not found in JWKS"),
        (Some(&forged), "invalid_token", "failed to introspect opaque token: no introspection endpoint available"),
    ] {
        let refused = first_word(token.map(String::as_str)).send(address);
        let expected = format!(
            "Bearer realm=\"{ISSUER}\", resource_metadata=\"{RESOURCE}/.well-known/oauth-protected-resource\", \
             error=\"{error}\", error_description=\"{told}\""
        );
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(expected.as_str())));
    }
    let document = Request::new("GET", "/.well-known/oauth-protected-resource").send(address).json();
    assert_eq!((&document["resource"], &document["authorization_servers"]), (&json!(RESOURCE), &json!([ISSUER])));
}

/// As workloads of a cluster do it: the token is a file that the node writes.
async fn a_pod_comes_with_its_own_token(place: &Place) {
    let token = json!({"serviceAccountToken": {"audience": AUDIENCE, "path": "token"}});
    let container = json!({"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent",
        "args": [VISIT, format!("{RESOURCE}/mcp")], "volumeMounts": [{"name": "token", "mountPath": "/token"}]});
    let labels = json!({"app": "visitor"});
    place
        .apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "visitor", "labels": labels}, "spec": {
            "serviceAccountName": "bee", "restartPolicy": "Never", "containers": [container],
            "volumes": [{"name": "token", "projected": {"sources": [token]}}]}}))
        .await;
    eventually("the pod was answered", || async {
        let told = place.printed_by("app=visitor").await;
        if told.contains("\"sum\":5") && told.contains(" 200") { Ok(()) } else { Err(told) }
    })
    .await;
}
