//! Tokens that only their issuer understands.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use skep_proxy::middleware::{Authentication, Oidc, OidcSettings, Step};
use tracing::Level;

use super::issuer::{AUDIENCE, Key, now};
use super::{call_with, guarded};
use crate::http::modern;
use crate::middleware::Guarded;
use crate::transparent::server::{Server, reply, with_sessions};
use crate::warnings::Warnings;

fn settings(server: &Server) -> OidcSettings {
    OidcSettings {
        issuer: "https://issuer.example".to_owned(),
        audience: AUDIENCE.to_owned(),
        introspection_url: format!("http://{}/introspect", server.address),
        client_id: "the proxy".to_owned(),
        client_secret: "p:w&d%".to_owned(),
        allows_private: true,
        allows_http: true,
        ..OidcSettings::default()
    }
}

fn good() -> Value {
    json!({"active": true, "iss": " https://issuer.example", "aud": AUDIENCE, "sub": "ann", "exp": now() + 60})
}

#[tokio::test]
async fn an_issuer_is_asked_as_the_standard_says() {
    let endpoint = Server::start(|_| reply(200, &[("content-type", "application/json")], good().to_string())).await;
    let guarded = guarded(&settings(&endpoint)).await;
    assert_eq!(call_with(&guarded, "op/aque+").await.status, 200);
    assert_eq!(call_with(&guarded, "op/aque+").await.status, 200);
    let asked = endpoint.seen();
    assert_eq!(asked.len(), 2, "nothing is remembered");
    assert_eq!((asked[0].method.as_str(), asked[0].target.as_str()), ("POST", "/introspect"));
    assert_eq!(asked[0].body, "token=op%2Faque%2B&token_type_hint=access_token");
    // the+proxy:p%3Aw%26d%25
    assert_eq!(asked[0].header("authorization"), Some("Basic dGhlK3Byb3h5OnAlM0F3JTI2ZCUyNQ=="));
}

#[tokio::test]
async fn auth_traps_14_and_86_what_an_endpoint_says_is_judged_and_not_repeated() {
    let with = |member: &str, value: Value| {
        let mut claims = good();
        claims[member] = value;
        (200, claims.to_string())
    };
    for ((status, body), told) in [
        (with("active", json!(false)), "token is not active"),
        (with("active", json!("true")), "token is not active"),
        ((200, r#"{"sub":"ann"}"#.to_owned()), "token is not active"),
        (with("exp", json!(now() - 5)), "token is expired"),
        (with("exp", Value::Null), "token has no expiration time"),
        (with("iss", json!("https://evil.example")), "invalid issuer"),
        (with("aud", json!("https://evil.example")), "invalid audience"),
        (with("sub", Value::Null), "Invalid authentication claims"),
        ((200, "a secret that is no JSON".to_owned()), "failed to introspect opaque token"),
        ((401, "a secret".to_owned()), "failed to introspect opaque token"),
        ((500, "a secret".to_owned()), "failed to introspect opaque token"),
        ((200, format!("\"{}\"", "a secret".repeat(1 << 20))), "failed to introspect opaque token"),
    ] {
        let shown = format!("{body:.60}");
        let endpoint = Server::start(move |_| reply(status, &[], body.clone())).await;
        let guarded = guarded(&settings(&endpoint)).await;
        let mut refused = call_with(&guarded, "opaque").await;
        let text = refused.text().await;
        assert_eq!(
            (refused.status, text.contains(told), text.contains("a secret")),
            (401, true, false),
            "{shown}: {text}"
        );
        assert!(guarded.server.seen().is_empty());
    }
}

#[tokio::test]
async fn an_endpoint_that_says_nothing_about_tokens_is_told_once_and_so_is_that_it_does_again() {
    for (status, body, cause) in
        [(200, "a secret", "its answer is no object in JSON"), (503, "", "it refuses with the status 503")]
    {
        let endpoint = Server::start(move |_| reply(status, &[], body)).await;
        let guarded = guarded(&settings(&endpoint)).await;
        let log = Warnings::down_to(Level::INFO);
        let told = || log.take().into_iter().filter(|line| line.contains("introspection endpoint")).collect::<Vec<_>>();
        for _ in 0..3 {
            assert_eq!(call_with(&guarded, "opaque").await.status, 401);
        }
        let failing = told();
        assert!(failing.len() == 1 && failing[0].contains("says nothing about tokens"), "{failing:?}");
        assert!(failing[0].contains(cause) && failing[0].contains("/introspect\""), "{failing:?}");
        assert!(!failing[0].contains("a secret"), "{failing:?}");
        endpoint.replace(|_| reply(200, &[], good().to_string()));
        for _ in 0..2 {
            assert_eq!(call_with(&guarded, "opaque").await.status, 200);
        }
        let well = told();
        assert!(well.len() == 1 && well[0].contains("says something again"), "{well:?}");
    }
}

#[tokio::test]
async fn a_signed_token_that_is_bad_is_not_asked_about() {
    let endpoint = Server::start(|_| reply(200, &[], good().to_string())).await;
    let settings = OidcSettings { key_set_url: format!("http://{}/keys", endpoint.address), ..settings(&endpoint) };
    let guarded = guarded(&settings).await;
    let key = Key::new("k", Algorithm::ES256);
    assert_eq!(call_with(&guarded, &key.sign(&good())).await.status, 401);
    assert!(endpoint.seen().iter().all(|seen| seen.target == "/keys"));
}

#[tokio::test]
async fn a_token_whose_end_comes_nearer_is_the_same_one() {
    let (left, until) = (std::sync::atomic::AtomicU64::new(60), now() + 60);
    let endpoint = Server::start(move |_| {
        let mut said = good();
        said["exp"] = json!(until);
        said["expires_in"] = json!(left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed));
        reply(200, &[], said.to_string())
    })
    .await;
    let oidc = Box::new(Oidc::new(&settings(&endpoint)).unwrap());
    let steps = vec![Step::Authenticate(Authentication::Oidc(oidc)), Step::Parse];
    let guarded = Guarded::new(steps, with_sessions("a")).await;
    for _ in 0..3 {
        let post = modern(1, "tools/list", json!({})).header("Authorization", "Bearer opaque");
        assert_eq!(guarded.send(post).await.json().await["result"]["session"], "a-0");
    }
}
