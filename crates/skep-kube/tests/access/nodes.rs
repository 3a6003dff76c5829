//! What a node may write is held to what is its own.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_kube::auth::User;
use skep_kube::auth::user::{AUTHENTICATED_GROUP, NODES_GROUP};
use skep_kube::store::Store;

use super::{admin, document, send, server_over, status};

const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/web/token";

fn node(name: &str) -> User {
    User::new(format!("system:node:{name}"), &[NODES_GROUP, AUTHENTICATED_GROUP])
}

fn named(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

#[tokio::test]
async fn a_node_registers_itself_and_nobody_else() {
    let server = server_over(&Store::open(None).unwrap()).await;
    let hive = node("hive");
    let (nodes, leases) = ("/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases");
    let privileged =
        json!({ "metadata": { "name": "hive", "labels": { "node-role.kubernetes.io/control-plane": "" } } });
    for (path, body, wanted) in [
        (nodes, named("nest"), StatusCode::FORBIDDEN),
        (nodes, privileged.clone(), StatusCode::FORBIDDEN),
        (nodes, named("hive"), StatusCode::CREATED),
        (leases, named("nest"), StatusCode::FORBIDDEN),
        (leases, named("hive"), StatusCode::CREATED),
    ] {
        assert_eq!(status(&server, &hive, Method::POST, path, body.clone()).await, wanted, "{path} {body}");
    }
    let itself = "/api/v1/nodes/hive";
    let taint = json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } });
    assert_eq!(status(&server, &hive, Method::PATCH, itself, privileged).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&server, &admin(), Method::PATCH, itself, taint).await, StatusCode::OK);
    let untainted = json!({ "spec": { "taints": null } });
    assert_eq!(status(&server, &hive, Method::PATCH, itself, untainted).await, StatusCode::FORBIDDEN);
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    assert_eq!(status(&server, &hive, Method::PATCH, "/api/v1/nodes/hive/status", ready).await, StatusCode::OK);
}

#[tokio::test]
async fn a_node_speaks_for_its_pods_only() {
    let server = server_over(&Store::open(None).unwrap()).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(status(&server, &admin(), Method::POST, accounts, named("web")).await, StatusCode::CREATED);
    let pod = json!({
        "metadata": { "name": "p" },
        "spec": { "serviceAccountName": "web", "nodeName": "hive", "containers": [{ "name": "c", "image": "i" }] },
    });
    let created = send(&server, &admin(), Method::POST, "/api/v1/namespaces/default/pods", pod).await;
    let uid = document(created).await["metadata"]["uid"].clone();
    let bound = json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid } } });
    assert_eq!(status(&server, &node("hive"), Method::POST, TOKENS, json!({})).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&server, &node("nest"), Method::POST, TOKENS, bound.clone()).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&server, &node("hive"), Method::POST, TOKENS, bound).await, StatusCode::CREATED);
    let path = "/api/v1/namespaces/default/pods/p/status";
    let running = json!({ "status": { "phase": "Running" } });
    let relabelled = json!({ "metadata": { "labels": { "app": "bank" } } });
    assert_eq!(status(&server, &node("nest"), Method::PATCH, path, running.clone()).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&server, &node("hive"), Method::PATCH, path, relabelled).await, StatusCode::FORBIDDEN);
    assert_eq!(status(&server, &node("hive"), Method::PATCH, path, running).await, StatusCode::OK);
}
