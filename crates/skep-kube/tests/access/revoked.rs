//! A right that was taken away is gone, and what was defined is served, for everybody and at once.

use std::task::{Context, Waker};
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_kube::server::Server;
use skep_kube::store::Store;
use tower::ServiceExt as _;

use super::{ROLES, admin, request, send, server_over, somebody, status};

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

fn binding(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name }],
    })
}

/// Sends a request and hangs up before there is an answer; then waits for its change to be in the store. The store must
/// be on disk: one in memory can be faster than the client.
async fn send_and_hang_up(server: &Server, store: &Store, method: &Method, path: &str, body: &Value) {
    let before = store.revision();
    let mut answer = Box::pin(server.router().oneshot(request(&admin(), method, path, body)));
    let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "{method} {path} was answered at once: {polled:?}");
    drop(answer);
    let changed = async {
        while store.revision() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), changed).await.unwrap();
}

#[tokio::test]
async fn a_right_is_gone_though_the_client_hung_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Some(folder.path())).unwrap();
    let server = server_over(&store).await;
    for name in ["alice", "bob", "carol"] {
        let user = somebody(name);
        let created =
            status(&server, &admin(), Method::POST, &format!("{ROLES}/clusterrolebindings"), binding(name)).await;
        assert_eq!(created, StatusCode::CREATED);
        assert_eq!(status(&server, &user, Method::GET, SECRETS, Value::Null).await, StatusCode::OK);
        let path = format!("{ROLES}/clusterrolebindings/{name}");
        send_and_hang_up(&server, &store, &Method::DELETE, &path, &Value::Null).await;
        assert_eq!(status(&server, &user, Method::GET, SECRETS, Value::Null).await, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn a_definition_is_served_though_the_client_hung_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(Some(folder.path())).unwrap();
    let server = server_over(&store).await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let version = |name: &str, is_stored: bool| {
        let schema = json!({ "openAPIV3Schema": { "type": "object" } });
        json!({ "name": name, "served": true, "storage": is_stored, "schema": schema })
    };
    let definition = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [version("v1", true)],
        },
    });
    assert_eq!(status(&server, &admin(), Method::POST, definitions, definition).await, StatusCode::CREATED);
    let is_served = async |path: String| {
        while status(&server, &admin(), Method::GET, &path, Value::Null).await != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), is_served("/apis/example.com/v1/widgets".into())).await.unwrap();
    let mut versions = vec![version("v1", true)];
    for number in 2..5 {
        let name = format!("v{number}");
        versions.push(version(&name, false));
        let change = json!({ "spec": { "versions": versions } });
        let path = format!("{definitions}/widgets.example.com");
        send_and_hang_up(&server, &store, &Method::PATCH, &path, &change).await;
        let list = format!("/apis/example.com/{name}/widgets");
        assert_eq!(status(&server, &admin(), Method::GET, &list, Value::Null).await, StatusCode::OK, "{name}");
    }
}

#[tokio::test]
async fn a_start_does_not_give_back_what_was_taken_away() {
    let store = Store::open(None).unwrap();
    let (bob, path) = (somebody("bob"), format!("{ROLES}/clusterrolebindings/system:basic-user"));
    let ask = json!({ "spec": { "nonResourceAttributes": { "path": "/x", "verb": "get" } } });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let first = server_over(&store).await;
    assert_eq!(status(&first, &bob, Method::POST, reviews, ask.clone()).await, StatusCode::CREATED);
    assert_eq!(status(&first, &admin(), Method::PATCH, &path, json!({ "subjects": [] })).await, StatusCode::OK);
    assert_eq!(status(&first, &bob, Method::POST, reviews, ask.clone()).await, StatusCode::FORBIDDEN);
    drop(first);
    let second = server_over(&store).await;
    assert_eq!(status(&second, &bob, Method::POST, reviews, ask).await, StatusCode::FORBIDDEN);
    assert_eq!(send(&second, &admin(), Method::GET, &path, Value::Null).await.status(), StatusCode::OK);
}
