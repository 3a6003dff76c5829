//! Tokens of another application, for whom an identity provider vouches.

use std::collections::HashMap;

use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};
use skep_proxy::middleware::{CrossAppAccess, CrossAppAccessSettings, Identity};

use crate::transparent::server::{Reply, Seen, Server, reply};

const AUDIENCE: &str = "https://other.example";
const RESOURCE: &str = "https://other.example/mcp";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

fn settings(idp: &Server, target: &Server) -> CrossAppAccessSettings {
    CrossAppAccessSettings {
        idp_token_url: format!("http://{}/idp", idp.address),
        idp_client_id: "us".to_owned(),
        idp_client_secret: "at the provider".to_owned(),
        target_token_url: format!("http://{}/target", target.address),
        target_client_id: "us".to_owned(),
        target_client_secret: "at the other".to_owned(),
        target_audience: AUDIENCE.to_owned(),
        target_resource: RESOURCE.to_owned(),
        scopes: vec!["read".to_owned()],
        ..CrossAppAccessSettings::default()
    }
}

fn somebody(name: &str) -> Identity {
    let claims: serde_json::Map<_, _> = [("sub".to_owned(), json!(name))].into_iter().collect();
    Identity::from_claims(claims, "a token for us").unwrap()
}

fn asked(seen: &Seen) -> HashMap<String, String> {
    url::form_urlencoded::parse(&seen.body).into_owned().collect()
}

fn assertion(kind: &str, claims: &Value) -> String {
    let header = Header { typ: Some(kind.to_owned()), ..Header::default() };
    jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(b"the provider's")).unwrap()
}

fn vouching(assertion: &str) -> Value {
    json!({"access_token": assertion, "issued_token_type": ID_JAG, "token_type": "n_a"})
}

fn good() -> Value {
    vouching(&assertion("oauth-id-jag+jwt", &json!({"aud": AUDIENCE, "resource": [RESOURCE], "sub": "ann"})))
}

fn giving(said: &Value) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let said = said.to_string();
    move |_| reply(200, &[("content-type", "application/json")], said.clone())
}

fn token() -> Value {
    json!({"access_token": "theirs", "token_type": "Bearer", "expires_in": 600})
}

#[tokio::test]
async fn a_provider_vouches_and_another_application_gives_a_token() {
    let (idp, target) = (Server::start(giving(&good())).await, Server::start(giving(&token())).await);
    let access = CrossAppAccess::new(&settings(&idp, &target)).unwrap();
    for name in ["ann", "ann", "bob"] {
        let authorization = access.authorization(&somebody(name), "id token").await.unwrap();
        assert_eq!(authorization, "Bearer theirs");
        assert!(authorization.is_sensitive());
    }
    // Once for each of the two.
    let (vouched, given) = (idp.seen(), target.seen());
    assert_eq!((vouched.len(), given.len()), (2, 2));
    let expected = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", ID_JAG),
        ("subject_token", "id token"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("audience", AUDIENCE),
        ("resource", RESOURCE),
        ("scope", "read"),
    ];
    assert_eq!(asked(&vouched[0]), expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let good = good();
    let expected = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("assertion", good["access_token"].as_str().unwrap()),
        ("scope", "read"),
    ];
    assert_eq!(asked(&given[0]), expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    // us:at+the+provider and us:at+the+other
    assert_eq!(vouched[0].header("authorization"), Some("Basic dXM6YXQrdGhlK3Byb3ZpZGVy"));
    assert_eq!(given[0].header("authorization"), Some("Basic dXM6YXQrdGhlK290aGVy"));
}

#[tokio::test]
async fn auth_trap_26_an_assertion_is_for_nobody_but_the_other_application() {
    let (idp, target) = (Server::start(giving(&good())).await, Server::start(giving(&token())).await);
    let access = CrossAppAccess::new(&settings(&idp, &target)).unwrap();
    let jag = |claims: Value| vouching(&assertion("oauth-id-jag+jwt", &claims));
    let with = |member: &str, value: Value| {
        let mut said = good();
        said[member] = value;
        said
    };
    for (said, is_good) in [
        (jag(json!({"aud": [AUDIENCE], "resource": RESOURCE})), true),
        (vouching(&assertion("JWT", &json!({"aud": AUDIENCE, "resource": RESOURCE}))), true),
        (jag(json!({"aud": "https://evil.example", "resource": RESOURCE})), false),
        (jag(json!({"aud": [AUDIENCE, "https://evil.example"], "resource": RESOURCE})), false),
        (jag(json!({"resource": RESOURCE})), false),
        (jag(json!({"aud": AUDIENCE})), false),
        (jag(json!({"aud": AUDIENCE, "resource": "https://other.example"})), false),
        (vouching("opaque"), false),
        (with("issued_token_type", json!("urn:ietf:params:oauth:token-type:access_token")), false),
        (with("issued_token_type", Value::Null), false),
        (with("token_type", json!("Bearer")), false),
        (with("error", json!("invalid_grant")), false),
    ] {
        idp.replace(giving(&said));
        // A name of its own, so that nothing is kept for it.
        let got = access.authorization(&somebody(&said.to_string()), "id token").await;
        assert_eq!((got.is_ok(), target.seen().len()), (is_good, usize::from(is_good)), "{said}");
    }
}

#[tokio::test]
async fn whoever_gives_no_token_is_told_in_general_words() {
    for fails_first in [true, false] {
        whoever_of_two_gives_no_token(fails_first).await;
    }
}

async fn whoever_of_two_gives_no_token(fails_first: bool) {
    let (idp, target) = (Server::start(giving(&good())).await, Server::start(giving(&token())).await);
    let access = CrossAppAccess::new(&settings(&idp, &target)).unwrap();
    let refused = async |failure: &str| {
        let told = access.authorization(&somebody("ann"), "id token").await.unwrap_err().to_string();
        assert_eq!(told, "there is no token for the other application", "{failure}");
    };
    let (failing, healthy) = if fails_first { (idp, good()) } else { (target, token()) };
    for (failure, status, body) in [
        ("a refusal", 400, r#"{"error":"invalid_grant","error_description":"hunter2"}"#.to_owned()),
        ("a challenge", 401, String::new()),
        ("no type", 200, r#"{"access_token":"t"}"#.to_owned()),
        ("garbage", 200, "<html>".to_owned()),
        // All of it is good, and there is too much of it.
        ("ten megabytes", 200, format!("{healthy}{}", " ".repeat(10 << 20))),
    ] {
        failing.replace(move |_| reply(status, &[], body.clone()));
        refused(failure).await;
    }
    failing.replace(giving(&healthy));
    let held = failing.hold();
    tokio::time::pause();
    refused("silence").await;
    tokio::time::resume();
    drop(held);
    assert!(access.authorization(&somebody("ann"), "id token").await.is_ok(), "nothing is wrong any more");
    let address = failing.address.clone();
    failing.end().await;
    let told = access.authorization(&somebody("bob"), "id token").await.unwrap_err().to_string();
    assert_eq!(told, "there is no token for the other application", "nobody there");
    let _back = Server::start_at(&address, giving(&healthy)).await;
    assert!(access.authorization(&somebody("bob"), "id token").await.is_ok(), "somebody is there again");
}
