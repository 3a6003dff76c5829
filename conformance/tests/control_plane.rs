//! The control plane itself: it comes up, authorises, schedules and signs, and nothing of it is left afterwards.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::TcpStream;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use skep_conformance::control_plane::ControlPlane;

#[tokio::test]
async fn it_serves_admins_refuses_strangers_and_leaves_nothing() {
    let Some(control_plane) =
        ControlPlane::start_or_skip("it_serves_admins_refuses_strangers_and_leaves_nothing").await
    else {
        return;
    };
    let admin = control_plane.admin().await.unwrap();
    assert!(Api::<Namespace>::all(admin.clone()).list(&ListParams::default()).await.unwrap().items.len() >= 4);

    let version = admin.apiserver_version().await.unwrap();
    assert_ne!(version.major, "0", "built without linker flags: {version:?}");

    let stranger = control_plane.client("nobody", None).await.unwrap();
    let error = Api::<Pod>::default_namespaced(stranger).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&error, kube::Error::Api(status) if status.code == 403), "{error}");

    let folder = control_plane.folder().to_path_buf();
    let address = control_plane.server().trim_start_matches("https://").to_owned();
    assert!(folder.is_dir() && TcpStream::connect(&address).is_ok());
    drop(control_plane);
    assert!(!folder.exists(), "{}", folder.display());
    assert!(TcpStream::connect(&address).is_err(), "something still listens at {address}");
}

#[tokio::test]
async fn a_node_joins_a_pod_is_scheduled_to_it_and_accounts_get_tokens() {
    let Some(control_plane) =
        ControlPlane::start_or_skip("a_node_joins_a_pod_is_scheduled_to_it_and_accounts_get_tokens").await
    else {
        return;
    };
    let admin = control_plane.admin().await.unwrap();
    join(&control_plane.client("system:node:bee", Some("system:nodes")).await.unwrap()).await;

    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "example.com/web:1" }] },
            },
        },
    }))
    .unwrap();
    Api::default_namespaced(admin.clone()).create(&PostParams::default(), &deployment).await.unwrap();
    assert_eq!(node_of_first_pod(&admin).await, "bee");

    let request = TokenRequest::default();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(admin);
    let token = accounts.create_token_request("default", &PostParams::default(), &request).await.unwrap();
    let token = token.status.unwrap().token.unwrap();
    assert_eq!(user_of(&control_plane, &token).await, "system:serviceaccount:default:default");
}

/// Registers a node with a node's own rights, ready for pods.
async fn join(client: &Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": "bee" } })).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let resources = json!({ "cpu": "2", "memory": "1Gi", "pods": "10" });
    let status = json!({ "status": {
        "capacity": resources,
        "allocatable": resources,
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Test", "message": "" }],
    } });
    nodes.patch_status("bee", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

async fn node_of_first_pod(client: &Client) -> String {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    for _ in 0..300 {
        let list = pods.list(&ListParams::default().labels("app=web")).await.unwrap();
        if let Some(node) = list.items.into_iter().find_map(|pod| pod.spec?.node_name) {
            return node;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no pod was scheduled within thirty seconds");
}

/// Who the server takes the bearer of a token for.
async fn user_of(control_plane: &ControlPlane, token: &str) -> String {
    let client = control_plane.bearer(token).await.unwrap();
    let review =
        Api::<SelfSubjectReview>::all(client).create(&PostParams::default(), &SelfSubjectReview::default()).await;
    review.unwrap().status.unwrap().user_info.unwrap().username.unwrap()
}
