//! Tokens that are taken for others before a server gets them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde_json::json;
use skep_proxy::middleware::{Authentication, Chain, Middleware, Oidc, Step, TokenExchange, TokenExchangeSettings};
use skep_proxy::transparent::{Dialect, Probing, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy};

use super::auth::issuer::{Issuer, Key};
use super::{Guarded, with_tools};
use crate::http::{PATIENCE, Request, call, initialize, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply, with_sessions};

fn settings(endpoint: &Server) -> TokenExchangeSettings {
    TokenExchangeSettings {
        token_url: format!("http://{}/token", endpoint.address),
        client_id: "the proxy".to_owned(),
        client_secret: "p:w&d%".to_owned(),
        audience: "backend".to_owned(),
        scopes: vec!["read".to_owned(), "write".to_owned()],
        ..TokenExchangeSettings::default()
    }
}

async fn guarded(settings: TokenExchangeSettings) -> Guarded {
    let exchange = Step::ExchangeToken(TokenExchange::new(settings).unwrap());
    Guarded::new(vec![Step::Authenticate(Authentication::Anonymous), exchange, Step::Parse], with_tools).await
}

pub(super) fn issuing(_: &Seen) -> Reply {
    let kind = "urn:ietf:params:oauth:token-type:access_token";
    let issued = json!({"access_token": "theirs", "token_type": "Bearer", "issued_token_type": kind});
    reply(200, &[("content-type", "application/json")], issued.to_string())
}

fn asking() -> Request {
    Request::post(&call(1, "feed")).header("Authorization", "Bearer o+urs")
}

#[tokio::test]
async fn auth_trap_25_the_server_gets_a_token_of_its_own_whatever_is_in_our_secret() {
    let endpoint = Server::start(issuing).await;
    let guarded = guarded(settings(&endpoint)).await;
    // A header that a client calls a matter between neighbours arrives all the same.
    assert_eq!(guarded.send(asking().header("Connection", "Authorization")).await.status, 200);
    assert_eq!(guarded.server.seen()[0].header("authorization"), Some("Bearer theirs"));
    let asked = endpoint.seen().remove(0);
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/token"));
    assert_eq!(
        String::from_utf8_lossy(&asked.body),
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange\
         &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token\
         &requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token\
         &audience=backend&scope=read+write&subject_token=o%2Burs"
    );
    // the+proxy:p%3Aw%26d%25 (auth trap 25)
    assert_eq!(asked.header("authorization"), Some("Basic dGhlK3Byb3h5OnAlM0F3JTI2ZCUyNQ=="));
}

#[tokio::test]
async fn auth_trap_17_a_header_of_its_own_does_not_bring_the_callers_token_along() {
    let endpoint = Server::start(issuing).await;
    let guarded = guarded(TokenExchangeSettings { header: Some("X-Upstream".to_owned()), ..settings(&endpoint) }).await;
    assert_eq!(guarded.send(asking().header("x-upstream", "spoofed")).await.status, 200);
    let seen = guarded.server.seen().remove(0);
    assert_eq!((seen.header("x-upstream"), seen.header("authorization")), (Some("Bearer theirs"), None));
    assert_eq!(seen.headers.get_all("x-upstream").iter().count(), 1);
}

#[tokio::test]
async fn auth_trap_18_a_header_of_the_same_name_stays() {
    let endpoint = Server::start(issuing).await;
    for name in ["authorization", "AUTHORIZATION"] {
        let guarded = guarded(TokenExchangeSettings { header: Some(name.to_owned()), ..settings(&endpoint) }).await;
        assert_eq!(guarded.send(asking()).await.status, 200);
        assert_eq!(guarded.server.seen()[0].header("authorization"), Some("Bearer theirs"), "{name}");
    }
}

#[tokio::test]
async fn whoever_has_no_token_passes_as_before() {
    let endpoint = Server::start(issuing).await;
    let guarded = guarded(settings(&endpoint)).await;
    for (header, value) in [("X-Other", "x"), ("Authorization", "Basic abc"), ("Authorization", "Bearer ")] {
        assert_eq!(guarded.send(Request::post(&call(1, "feed")).header(header, value)).await.status, 200);
        assert_eq!(guarded.server.seen()[0].header(&header.to_lowercase()), Some(value.trim()));
    }
    assert!(endpoint.seen().is_empty());
}

#[tokio::test]
async fn auth_trap_24_an_exchange_that_fails_is_told_in_general_words() {
    let endpoint = Server::start(issuing).await;
    let guarded = guarded(settings(&endpoint)).await;
    let refused = async |failure: &str| {
        let mut answer = guarded.send(asking()).await;
        let text = answer.text().await;
        assert_eq!((answer.status, text.as_str()), (401, "Token exchange failed\n"), "{failure}");
        assert!(guarded.server.seen().is_empty(), "{failure}");
    };
    for (failure, status, body) in [
        ("a refusal", 400, r#"{"error":"invalid_grant","error_description":"hunter2"}"#.to_owned()),
        ("a refusal that is a success", 200, r#"{"error":"hunter2","access_token":"t"}"#.to_owned()),
        ("no token", 200, r#"{"token_type":"Bearer","issued_token_type":"x"}"#.to_owned()),
        ("no type", 200, r#"{"access_token":"t"}"#.to_owned()),
        ("garbage", 200, "<html>".to_owned()),
        ("ten megabytes", 200, format!(r#"{{"access_token":"{}"}}"#, "x".repeat(10 << 20))),
    ] {
        endpoint.replace(move |_| reply(status, &[], body.clone()));
        refused(failure).await;
    }
    for to in ["http://169.254.169.254/token", "//[fd00:ec2::254]/token", "/elsewhere"] {
        endpoint.replace(move |_| reply(307, &[("location", to)], ""));
        refused(to).await;
        assert_eq!(endpoint.seen().len(), 1, "{to}");
    }
    // A token that no header can hold.
    let split = json!({"access_token": "a\nb", "token_type": "Bearer", "issued_token_type": "x"}).to_string();
    endpoint.replace(move |_| reply(200, &[], split.clone()));
    let mut answer = guarded.send(asking()).await;
    assert_eq!((answer.status, answer.text().await.as_str()), (500, "Token injection failed\n"));
    endpoint.end().await;
    refused("nobody there").await;
}

/// An endpoint whose tokens say whom they were given for.
fn issuing_for_a_while(seen: &Seen) -> Reply {
    let asked: HashMap<_, _> = url::form_urlencoded::parse(&seen.body).into_owned().collect();
    let token = format!("theirs for {}", asked["subject_token"]);
    let issued = json!({"access_token": token, "token_type": "Bearer", "issued_token_type": "x", "expires_in": 3600});
    reply(200, &[("content-type", "application/json")], issued.to_string())
}

async fn send_as(guarded: &Guarded, token: &str) -> u16 {
    let request = Request::post(&call(1, "feed")).header("Authorization", &format!("Bearer {token}"));
    guarded.send(request).await.status
}

fn given(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.header("authorization").unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_token_is_kept_for_the_one_whom_it_was_given_for() {
    let endpoint = Server::start(issuing_for_a_while).await;
    let guarded = guarded(settings(&endpoint)).await;
    for token in ["ann", "bob", "ann", "bob", "ann"] {
        assert_eq!(send_as(&guarded, token).await, 200);
        assert_eq!(given(&guarded.server), [format!("Bearer theirs for {token}")]);
    }
    assert_eq!(endpoint.seen().len(), 2);
    // Another configuration begins with nothing.
    let other = TokenExchange::new(TokenExchangeSettings { audience: "other".to_owned(), ..settings(&endpoint) });
    let other = Step::ExchangeToken(other.unwrap());
    guarded.middleware.replace(Chain::new(vec![Step::Authenticate(Authentication::Anonymous), other]));
    assert_eq!(send_as(&guarded, "ann").await, 200);
    assert!(String::from_utf8_lossy(&endpoint.seen()[0].body).contains("audience=other"));
}

#[tokio::test]
async fn many_requests_at_once_make_one_exchange() {
    let endpoint = Server::start(issuing_for_a_while).await;
    let guarded = guarded(settings(&endpoint)).await;
    let slow = endpoint.hold();
    let all = futures::future::join_all((0..20).map(|_| send_as(&guarded, "ann")));
    let release = async { drop(slow) };
    let (statuses, ()) = futures::future::join(all, release).await;
    assert_eq!((statuses, endpoint.seen().len()), (vec![200; 20], 1));
    assert_eq!(given(&guarded.server), vec!["Bearer theirs for ann"; 20]);
}

#[tokio::test]
async fn a_token_that_the_server_does_not_take_is_not_kept() {
    let endpoint = Server::start(issuing_for_a_while).await;
    let guarded = guarded(settings(&endpoint)).await;
    guarded.server.replace(|_| reply(401, &[], ""));
    for _ in 0..2 {
        assert_eq!(send_as(&guarded, "ann").await, 401);
        assert_eq!(endpoint.seen().len(), 1);
    }
    guarded.server.replace(with_tools);
    for exchanges in [1, 0] {
        assert_eq!(send_as(&guarded, "ann").await, 200);
        assert_eq!(endpoint.seen().len(), exchanges);
    }
}

#[tokio::test]
async fn a_session_that_is_used_again_is_talked_to_as_the_request_says_now() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let given = AtomicUsize::new(0);
    let endpoint = Server::start(move |_| {
        let token = format!("token-{}", given.fetch_add(1, Ordering::SeqCst));
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        let given = json!({"access_token": token, "token_type": "Bearer", "issued_token_type": kind});
        reply(200, &[("content-type", "application/json")], given.to_string())
    })
    .await;
    let settings = TokenExchangeSettings { header: Some("X-Upstream".to_owned()), ..settings(&endpoint) };
    let oidc = Authentication::Oidc(Box::new(Oidc::new(&issuer.settings()).unwrap()));
    let exchange = Step::ExchangeToken(TokenExchange::new(settings).unwrap());
    let mut guarded = Guarded::new(vec![Step::Authenticate(oidc), exchange, Step::Parse], with_sessions("a")).await;
    let own = format!("Bearer {}", key.sign(&issuer.claims()));
    let trace = |turn: usize| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333{turn}-01");
    for turn in 0..2 {
        let call = modern(turn, "tools/call", json!({"name": "feed", "arguments": {}}))
            .header("Authorization", &own)
            .header("X-Tenant", "north")
            .header("traceparent", &trace(turn));
        let mut answer = guarded.send(call).await;
        assert_eq!(answer.json().await["result"]["session"], "a-0", "one session for both");
        let seen = guarded.server.seen();
        let called = seen.iter().find(|seen| seen.json()["method"] == "tools/call").unwrap();
        assert_eq!(called.header("x-upstream"), Some(&*format!("Bearer token-{turn}")));
        assert_eq!(called.header("x-tenant"), Some("north"));
        assert_eq!(called.header("traceparent"), Some(&*trace(turn)));
    }
    // A token of the same user that may allow something else is another one.
    let mut claims = issuer.claims();
    claims["scope"] = json!("less");
    let other = modern(2, "tools/call", json!({"name": "feed", "arguments": {}}))
        .header("Authorization", &format!("Bearer {}", key.sign(&claims)))
        .header("X-Tenant", "north");
    assert_eq!(guarded.send(other).await.json().await["result"]["session"], "a-1");
    guarded.before.stop().await;
    let ended = guarded
        .server
        .seen()
        .into_iter()
        .find(|seen| seen.header("mcp-session-id") == Some("a-0") && seen.method == "DELETE")
        .unwrap();
    assert_eq!(ended.header("x-upstream"), Some("Bearer token-1"), "it ends with what was good last");
}

#[tokio::test]
async fn auth_trap_28_whether_a_server_is_alive_is_asked_with_nobodys_token() {
    let (endpoint, server) = (Server::start(issuing).await, Server::start(with_sessions("a")).await);
    let exchange = Step::ExchangeToken(TokenExchange::new(settings(&endpoint)).unwrap());
    let chain = Chain::new(vec![Step::Authenticate(Authentication::Anonymous), exchange, Step::Parse]);
    let target = Target::local(Dialect::Streamable, &format!("http://{}", server.address)).unwrap();
    let often = Probing { interval: Duration::from_millis(20), ..Probing::default() };
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default()).unwrap();
    let proxy = Proxy::transparent(transparent.with_probing(Some(often))).with_middleware(Middleware::new(chain));
    let before = Before::unready(proxy).await;
    before.await_ready().await;
    let hello = Request::post(&initialize("2025-11-25")).header("Authorization", "Bearer o+urs");
    assert_eq!(before.send(hello).await.status, 200);
    let mut probes = Vec::new();
    let asked = async {
        while probes.len() < 5 {
            probes.extend(server.seen().into_iter().filter(|seen| seen.method == "GET"));
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
    assert!(probes.iter().all(|probe| probe.header("authorization").is_none()));
    assert_eq!(endpoint.seen().len(), 1, "a token was asked for once, for the caller");
}

#[tokio::test]
async fn a_session_that_is_opened_with_a_token_is_not_used_when_that_has_ended() {
    const GOOD_FOR: Duration = Duration::from_secs(2);
    let endpoint = Server::start(|_| {
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        let issued = json!({
            "access_token": "theirs", "token_type": "Bearer", "issued_token_type": kind, "expires_in": GOOD_FOR.as_secs(),
        });
        reply(200, &[("content-type", "application/json")], issued.to_string())
    })
    .await;
    let exchange = Step::ExchangeToken(TokenExchange::new(settings(&endpoint)).unwrap());
    let steps = vec![Step::Authenticate(Authentication::Anonymous), exchange];
    let guarded = Guarded::new(steps, with_sessions("s")).await;
    let ask = async || {
        let call = modern("x", "tools/call", json!({"name": "t"})).header("Authorization", "Bearer ours");
        guarded.send(call).await.json().await["result"]["session"].clone()
    };
    let begun = std::time::Instant::now();
    let first = ask().await;
    assert_eq!(first, "s-0");
    let another = async {
        loop {
            let session = ask().await;
            if session != first {
                return session;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, another).await.unwrap(), "s-1");
    assert!(begun.elapsed() >= GOOD_FOR, "until then it is the same one");
}
