//! A server says the same in protobuf as in JSON, be it ours or a real one, and the bytes are those that we would write.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "protobuf/client.rs"]
mod client;
#[path = "protobuf/kinds.rs"]
mod kinds;
#[path = "protobuf/refusals.rs"]
mod refusals;

use client::Client;
use skep_conformance::control_plane::ControlPlane;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;

#[tokio::test(flavor = "multi_thread")]
async fn our_server_says_the_same_in_protobuf_as_in_json() {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:6443").await.unwrap();
    check(&Client(server.client())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_says_the_same_in_protobuf_as_in_json() {
    let test = "a_real_server_says_the_same_in_protobuf_as_in_json";
    let Some(plane) = ControlPlane::start_bare_or_skip(test).await else {
        return;
    };
    check(&Client(plane.admin().await.unwrap())).await;
}

async fn check(client: &Client) {
    kinds::prepare(client).await;
    let mut differences = kinds::compare_objects(client).await;
    differences.extend(kinds::compare_collections(client).await);
    differences.extend(kinds::compare_questions(client).await);
    differences.extend(refusals::compare(client).await);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
