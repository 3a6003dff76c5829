//! Who may do what, whatever becomes of connections, processes and certificates.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "access/certificates.rs"]
mod certificates;
#[path = "access/issuer.rs"]
mod issuer;
#[path = "access/nodes.rs"]
mod nodes;
#[path = "access/revoked.rs"]
mod revoked;

use axum::body::Body;
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;
use skep_kube::auth::User;
use skep_kube::auth::identity::Certificate;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::auth::user::{AUTHENTICATED_GROUP, MASTERS_GROUP};
use skep_kube::server::Server;
use skep_kube::store::Store;
use tower::ServiceExt as _;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn server_over(store: &Store) -> Server {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(store.clone(), tokens, "127.0.0.1:6443").await.unwrap()
}

fn admin() -> User {
    User::new("admin", &[MASTERS_GROUP, AUTHENTICATED_GROUP])
}

fn somebody(name: &str) -> User {
    User::new(name, &[AUTHENTICATED_GROUP])
}

fn request(user: &User, method: &Method, path: &str, body: &Value) -> Request<Body> {
    let content_type = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    request.extension(Certificate::Good(user.clone())).body(body).unwrap()
}

async fn send(server: &Server, user: &User, method: Method, path: &str, body: Value) -> Response<Body> {
    server.router().oneshot(request(user, &method, path, &body)).await.unwrap()
}

async fn status(server: &Server, user: &User, method: Method, path: &str, body: Value) -> StatusCode {
    send(server, user, method, path, body).await.status()
}

async fn document(response: Response<Body>) -> Value {
    serde_json::from_slice(&axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap()).unwrap()
}
