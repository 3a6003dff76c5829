//! Servers that are called on behalf of somebody.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use skep_proxy::middleware::{Authentication, OnBehalfOf, OnBehalfOfSettings, Step};

use super::{Guarded, with_tools};
use crate::http::{PATIENCE, Request, Response, call};
use crate::transparent::server::{Reply, Seen, Server, reply};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

fn settings(endpoint: &Server) -> OnBehalfOfSettings {
    OnBehalfOfSettings {
        token_url: format!("http://{}/token", endpoint.address),
        client_id: "proxy".to_owned(),
        client_secret: "hunter2".to_owned(),
        audience: "backend".to_owned(),
        scopes: vec!["read".to_owned(), "write".to_owned()],
        ..OnBehalfOfSettings::default()
    }
}

async fn guarded(settings: &OnBehalfOfSettings) -> Guarded {
    let step = Step::ActOnBehalf(OnBehalfOf::new(settings).unwrap());
    Guarded::new(vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, step], with_tools).await
}

async fn call_as(guarded: &Guarded, token: &str) -> Response {
    guarded.send(Request::post(&call(1, "feed")).header("Authorization", &format!("Bearer {token}"))).await
}

fn asked(seen: &Seen) -> HashMap<String, String> {
    url::form_urlencoded::parse(&seen.body).into_owned().collect()
}

/// An endpoint whose tokens say who acts for whom.
fn issuing(seen: &Seen) -> Reply {
    let asked = asked(seen);
    let token = match asked["grant_type"].as_str() {
        "client_credentials" => "we".to_owned(),
        _ => format!("{} for {}", asked.get("actor_token").map_or("nobody", String::as_str), asked["subject_token"]),
    };
    let issued = json!({"access_token": token, "token_type": "Bearer", "issued_token_type": ACCESS_TOKEN,
        "expires_in": "3600"});
    reply(200, &[("content-type", "application/json")], issued.to_string())
}

#[tokio::test]
async fn the_server_sees_who_acts_for_whom() {
    let endpoint = Server::start(issuing).await;
    let guarded = guarded(&settings(&endpoint)).await;
    for caller in ["ann", "bob", "ann"] {
        assert_eq!(call_as(&guarded, caller).await.status, 200);
        let seen = guarded.server.seen().remove(0);
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer we for {caller}")));
    }
    // Who we are is asked once, and each caller's token once.
    let seen = endpoint.seen();
    let grants: Vec<String> = seen.iter().map(|seen| asked(seen)["grant_type"].clone()).collect();
    let exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
    assert_eq!(grants, ["client_credentials", exchange, exchange]);
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Basic cHJveHk6aHVudGVyMg==")));
    let expected = [
        ("grant_type", exchange),
        ("subject_token", "ann"),
        ("subject_token_type", ACCESS_TOKEN),
        ("actor_token", "we"),
        ("actor_token_type", ACCESS_TOKEN),
        ("requested_token_type", ACCESS_TOKEN),
        ("audience", "backend"),
        ("scope", "read write"),
    ];
    assert_eq!(asked(&seen[1]), expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[tokio::test]
async fn a_token_of_ours_that_was_taken_back_is_asked_for_again() {
    let generation = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&generation);
    let endpoint = Server::start(move |seen| {
        let (asked, we) = (asked(seen), format!("we{}", now.load(Ordering::SeqCst)));
        let token = match asked["grant_type"].as_str() {
            "client_credentials" => we,
            _ if asked["actor_token"] != we || asked["subject_token"] == "mallory" => {
                return reply(400, &[], r#"{"error":"invalid_request"}"#);
            }
            _ => format!("{we} for {}", asked["subject_token"]),
        };
        let issued = json!({"access_token": token, "token_type": "Bearer", "issued_token_type": ACCESS_TOKEN,
            "expires_in": 3600});
        reply(200, &[("content-type", "application/json")], issued.to_string())
    })
    .await;
    let guarded = guarded(&settings(&endpoint)).await;
    assert_eq!(call_as(&guarded, "ann").await.status, 200);
    generation.store(2, Ordering::SeqCst);
    // One that was given a moment ago is not asked for again.
    let renewed = async { while call_as(&guarded, "bob").await.status != 200 {} };
    tokio::time::timeout(PATIENCE, renewed).await.unwrap();
    let seen = guarded.server.seen();
    assert_eq!(seen[seen.len() - 1].header("authorization"), Some("Bearer we2 for bob"));
    endpoint.seen();
    // Whoever is refused whoever we are does not make us ask again and again.
    for _ in 0..20 {
        assert_eq!(call_as(&guarded, "mallory").await.status, 401);
    }
    let own = endpoint.seen().iter().filter(|seen| asked(seen)["grant_type"] == "client_credentials").count();
    assert!(own < 10, "{own}");
}

#[tokio::test]
async fn without_a_client_nobody_is_said_to_act() {
    let endpoint = Server::start(issuing).await;
    let settings = OnBehalfOfSettings { client_id: String::new(), client_secret: String::new(), ..settings(&endpoint) };
    let guarded = guarded(&settings).await;
    assert_eq!(call_as(&guarded, "ann").await.status, 200);
    assert_eq!(guarded.server.seen()[0].header("authorization"), Some("Bearer nobody for ann"));
    let seen = endpoint.seen();
    assert_eq!(seen.len(), 1);
    assert!(!asked(&seen[0]).contains_key("actor_token_type") && seen[0].header("authorization").is_none());
}

#[tokio::test]
async fn whoever_cannot_be_acted_for_is_refused() {
    let endpoint = Server::start(issuing).await;
    let guarded = guarded(&settings(&endpoint)).await;
    for (header, value) in [("X-Other", "x"), ("Authorization", "Basic abc"), ("Authorization", "Bearer ")] {
        let mut answer = guarded.send(Request::post(&call(1, "feed")).header(header, value)).await;
        assert_eq!((answer.status, answer.text().await.as_str()), (401, "Bearer token required\n"), "{value}");
    }
    // Nobody in particular calls when nobody was asked who calls.
    guarded.middleware.replace(skep_proxy::middleware::Chain::new(vec![Step::ActOnBehalf(
        OnBehalfOf::new(&settings(&endpoint)).unwrap(),
    )]));
    let mut answer = call_as(&guarded, "ann").await;
    assert_eq!((answer.status, answer.text().await.as_str()), (401, "Authentication required\n"));
    assert!(guarded.server.seen().is_empty() && endpoint.seen().is_empty());
}

#[tokio::test]
async fn an_endpoint_that_fails_is_told_in_general_words() {
    let endpoint = Server::start(issuing).await;
    let guarded = guarded(&settings(&endpoint)).await;
    let refused = async |failure: &str| {
        let mut answer = call_as(&guarded, "ann").await;
        let text = answer.text().await;
        assert_eq!((answer.status, text.as_str()), (401, "Token exchange failed\n"), "{failure}");
        assert!(guarded.server.seen().is_empty(), "{failure}");
    };
    for (failure, status, body) in [
        ("a refusal", 400, r#"{"error":"invalid_grant","error_description":"hunter2"}"#.to_owned()),
        ("an unknown client", 401, r#"{"error":"invalid_client"}"#.to_owned()),
        ("a refusal that is a success", 200, r#"{"error":"hunter2","access_token":"t"}"#.to_owned()),
        ("garbage", 200, "<html>".to_owned()),
        ("ten megabytes", 200, format!(r#"{{"access_token":"{}"}}"#, "x".repeat(10 << 20))),
    ] {
        endpoint.replace(move |_| reply(status, &[], body.clone()));
        refused(failure).await;
    }
    // Who acts is known, and the exchange fails.
    endpoint.replace(|seen| match asked(seen)["grant_type"].as_str() {
        "client_credentials" => issuing(seen),
        _ => reply(400, &[], r#"{"error":"invalid_grant"}"#),
    });
    refused("a refused exchange").await;
    endpoint.end().await;
    refused("nobody there").await;
}
