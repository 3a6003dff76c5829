//! What the server gets to see of a client, and what it gets from us.

use std::collections::BTreeMap;

use jsonwebtoken::Algorithm;
use serde_json::json;
use skep_proxy::middleware::{Authentication, Chain, ForwardHeaders, Oidc, Step};
use skep_proxy::transparent::Dialect;

use super::auth::issuer::{Issuer, Key};
use super::{Guarded, with_tools};
use crate::http::{Request, call, modern};
use crate::transparent::server::{Before, Server, with_sessions};

fn forwarded(name: &str, value: &str) -> Step {
    let headers: BTreeMap<String, String> = [(name.to_owned(), value.to_owned())].into();
    Step::ForwardHeaders(ForwardHeaders::new(&headers).unwrap())
}

#[tokio::test]
async fn credentials_are_kept_from_the_server() {
    let guarded = Guarded::new(vec![Step::StripCredentials], with_tools).await;
    let request = Request::post(&call(1, "feed"))
        .header("Authorization", "Bearer t")
        .header("Cookie", "a=b")
        .header("Proxy-Authorization", "Basic x")
        .header("X-Other", "kept");
    assert_eq!(guarded.send(request).await.status, 200);
    let seen = &guarded.server.seen()[0];
    for name in ["authorization", "cookie", "proxy-authorization"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("x-other"), Some("kept"));
}

#[tokio::test]
async fn headers_of_ours_replace_those_of_a_client() {
    let guarded = Guarded::new(vec![forwarded("X-Api-Key", "ours")], with_tools).await;
    let request = Request::post(&call(1, "feed")).header("x-api-key", "theirs").header("X-API-KEY", "more");
    assert_eq!(guarded.send(request).await.status, 200);
    let seen = &guarded.server.seen()[0];
    let values: Vec<_> = seen.headers.get_all("x-api-key").iter().collect();
    assert_eq!(values, ["ours"]);
}

#[tokio::test]
async fn a_client_cannot_have_a_header_of_ours_removed() {
    let guarded = Guarded::new(vec![forwarded("X-Api-Key", "ours")], with_tools).await;
    let request = Request::post(&call(1, "feed")).header("Connection", "x-api-key");
    assert_eq!(guarded.send(request).await.status, 200);
    assert_eq!(guarded.server.seen()[0].header("x-api-key"), Some("ours"));
}

/// What a server gets of a caller who has proved who it is, behind these steps.
async fn shown(is_remote: bool, behind: impl FnOnce() -> Vec<Step>) -> (String, Option<String>) {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let server = Server::start(with_tools).await;
    let (before, middleware) = if is_remote {
        Before::chained_remote(&server).await
    } else {
        Before::chained(&server, Dialect::Streamable).await
    };
    let oidc = Authentication::Oidc(Box::new(Oidc::new(&issuer.settings()).unwrap()));
    let mut steps = vec![Step::Authenticate(oidc), Step::Parse];
    steps.extend(behind());
    middleware.replace(Chain::new(steps));
    let own = format!("Bearer {}", key.sign(&issuer.claims()));
    let request = Request::post(&call(1, "feed")).header("Authorization", &own);
    assert_eq!(before.send(request).await.status, 200);
    let seen = server.seen().remove(0);
    (own, seen.header("authorization").map(str::to_owned))
}

#[tokio::test]
async fn a_token_for_us_is_not_shown_to_a_server_of_somebody_else() {
    let (_, seen) = shown(true, Vec::new).await;
    assert_eq!(seen, None);
    let (_, seen) = shown(true, || vec![forwarded("X-Api-Key", "ours")]).await;
    assert_eq!(seen, None);
    let (_, seen) = shown(true, || vec![forwarded("Authorization", "Bearer ours")]).await;
    assert_eq!(seen.as_deref(), Some("Bearer ours"));
    let (own, seen) = shown(false, Vec::new).await;
    assert_eq!(seen, Some(own), "it is meant for the server that stands behind us");
}

#[tokio::test]
async fn a_token_for_us_is_not_shown_either_where_eras_are_bridged() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let server = Server::start(with_sessions("a")).await;
    let (before, middleware) = Before::chained_remote(&server).await;
    let oidc = Authentication::Oidc(Box::new(Oidc::new(&issuer.settings()).unwrap()));
    middleware.replace(Chain::new(vec![Step::Authenticate(oidc), Step::Parse]));
    let own = format!("Bearer {}", key.sign(&issuer.claims()));
    let call = modern(1, "tools/call", json!({"name": "feed", "arguments": {}})).header("Authorization", &own);
    assert_eq!(before.send(call).await.status, 200);
    let seen = server.seen();
    assert!(seen.len() > 2 && seen.iter().all(|seen| seen.header("authorization").is_none()), "{seen:?}");
}

#[tokio::test]
async fn what_nobody_had_to_prove_goes_on_as_it_came() {
    let server = Server::start(with_tools).await;
    let (before, middleware) = Before::chained_remote(&server).await;
    for everybody in [Authentication::Anonymous, Authentication::Local] {
        middleware.replace(Chain::new(vec![Step::Authenticate(everybody), Step::Parse]));
        let request = Request::post(&call(1, "feed")).header("Authorization", "Bearer theirs");
        assert_eq!(before.send(request).await.status, 200);
        assert_eq!(server.seen()[0].header("authorization"), Some("Bearer theirs"));
    }
}

/// What we prove ourselves with is the same for all clients, and does not make one of them.
#[tokio::test]
async fn strangers_before_whom_we_put_our_own_credentials_stay_strangers() {
    for name in ["Authorization", "X-Api-Key", "Cookie"] {
        let server = Server::start(with_sessions("a")).await;
        let (before, middleware) = Before::chained(&server, Dialect::Streamable).await;
        middleware.replace(Chain::new(vec![
            Step::Authenticate(Authentication::Anonymous),
            Step::Parse,
            forwarded(name, "ours"),
        ]));
        // So many sessions are opened for two requests that say this.
        let opened = async |own: Option<(&str, &str)>| {
            server.seen();
            for _ in 0..2 {
                let post = modern(1, "tools/list", json!({}));
                let post = own.into_iter().fold(post, |post, (name, value)| post.header(name, value));
                assert!(before.send(post).await.json().await["result"]["session"].is_string());
            }
            server.seen().iter().filter(|seen| seen.json()["method"] == "initialize").count()
        };
        assert_eq!(opened(None).await, 2, "{name}: two strangers have one session");
        // Nobody looks at what is replaced, so that anybody could say it.
        assert_eq!(opened(Some((name, "theirs"))).await, 2, "{name}");
        let other = if name == "Cookie" { "X-Api-Key" } else { "Cookie" };
        assert_eq!(
            opened(Some((other, "theirs"))).await,
            1,
            "{name}: what the server sees of a client tells it from others"
        );
        let mut open = Vec::new();
        for _ in 0..9 {
            open.push(before.send(modern("l", "subscriptions/listen", json!({"notifications": {}}))).await);
        }
        assert!(open.iter().all(|stream| stream.status == 200), "{name}: strangers have the places of one client");
    }
}
