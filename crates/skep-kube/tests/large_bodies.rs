//! Large bodies are read without keeping others waiting, and large objects are sent without a copy for each client.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use skep_kube::auth::User;
use skep_kube::auth::identity::Certificate;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::auth::user::MASTERS_GROUP;
use skep_kube::server::Server;
use skep_kube::store::Store;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

const WRITES: usize = 6;
const MEMBERS: usize = 30_000;

async fn router() -> Router {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap().router()
}

async fn code(router: Router, mut request: Request<Body>) -> u16 {
    request.extensions_mut().insert(Certificate::Good(User::new("admin", &[MASTERS_GROUP])));
    router.oneshot(request).await.unwrap().status().as_u16()
}

/// Half a MiB of small members.
fn large() -> String {
    let members: Vec<String> = (0..MEMBERS).map(|number| format!(r#""key{number:06}":"v""#)).collect();
    format!(r#"{{"metadata":{{"name":"large"}},"data":{{{}}}}}"#, members.join(","))
}

/// With one thread for everybody, requests are answered in the order in which they came, unless those that take long
/// step aside.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_is_told_while_large_bodies_are_read() {
    let router = router().await;
    let (body, answered) = (large(), Arc::new(AtomicUsize::new(0)));
    let mut writes = JoinSet::new();
    for _ in 0..WRITES {
        let (router, body, answered) = (router.clone(), body.clone(), answered.clone());
        writes.spawn(async move {
            let request = Request::post("/api/v1/namespaces/default/configmaps?dryRun=All").body(body.into()).unwrap();
            let code = code(router, request).await;
            answered.fetch_add(1, Ordering::SeqCst);
            code
        });
    }
    let health = tokio::spawn(async move {
        let code = code(router, Request::get("/livez").body(Body::empty()).unwrap()).await;
        (code, answered.load(Ordering::SeqCst))
    });
    let (code, answered) = health.await.unwrap();
    assert_eq!(code, 200);
    assert!(answered < WRITES / 2, "{answered} large bodies were read first");
    for code in writes.join_all().await {
        assert_eq!(code, 201);
    }
}

/// The largest piece of the first event of a watch.
async fn largest_piece(router: Router) -> Bytes {
    let mut request = Request::get("/api/v1/namespaces/default/configmaps?watch=true").body(Body::empty()).unwrap();
    request.extensions_mut().insert(Certificate::Good(User::new("admin", &[MASTERS_GROUP])));
    let mut body = router.oneshot(request).await.unwrap().into_body();
    let (mut largest, mut event) = (Bytes::new(), Vec::new());
    while !event.ends_with(b"}\n") {
        let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
        event.extend_from_slice(&piece);
        largest = if piece.len() > largest.len() { piece } else { largest };
    }
    let event: serde_json::Value = serde_json::from_slice(&event).unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&"ADDED".into(), &"ConfigMap".into()));
    assert_eq!(event["object"]["data"].as_object().unwrap().len(), MEMBERS);
    largest
}

#[tokio::test]
async fn watches_of_a_large_object_share_its_bytes() {
    let router = router().await;
    let request = Request::post("/api/v1/namespaces/default/configmaps").body(large().into()).unwrap();
    assert_eq!(code(router.clone(), request).await, 201);
    let (one, other) = (largest_piece(router.clone()).await, largest_piece(router).await);
    assert!(one.len() > large().len() / 2);
    assert_eq!((one.as_ptr(), one.len()), (other.as_ptr(), other.len()), "each watch has a copy");
}
