//! Others can check the tokens of this server.

use http::{Method, StatusCode};
use serde_json::Value;
use skep_kube::store::Store;

use super::{admin, document, send, server_over};

#[tokio::test]
async fn the_keys_of_tokens_are_served() {
    let server = server_over(&Store::open(None).unwrap()).await;
    let configuration = send(&server, &admin(), Method::GET, "/.well-known/openid-configuration", Value::Null).await;
    assert_eq!(configuration.status(), StatusCode::OK);
    assert_eq!(configuration.headers()["cache-control"], "public, max-age=3600");
    let configuration = document(configuration).await;
    assert_eq!(configuration["jwks_uri"], "https://kubernetes.default.svc/openid/v1/jwks");

    let keys = send(&server, &admin(), Method::GET, "/openid/v1/jwks", Value::Null).await;
    assert_eq!(keys.headers()["content-type"], "application/jwk-set+json");
    let algorithm = document(keys).await["keys"][0]["alg"].clone();
    assert_eq!(configuration["id_token_signing_alg_values_supported"][0], algorithm);
}
