//! Issuers that answer in their own way, at their own addresses.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{Accept, TlsAcceptor};

use super::*;
use crate::fetch::{FetchPolicy, Fetcher, TlsFiles};

pub(in crate::middleware::auth) const GITHUB: &str = "https://api.github.com/applications/app/token";
const NOW: f64 = 1000.0;

/// What a server says: a status and a body.
type Said = Arc<Mutex<(u16, String)>>;

/// A certificate for somebody of these names, and what proves to be them.
pub(in crate::middleware::auth) fn certificate(names: &[&str]) -> (String, TlsAcceptor) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    (made.cert.pem(), TlsAcceptor::from(Arc::new(config)))
}

/// Answers every request alike, and keeps what it was asked.
pub(in crate::middleware::auth) fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    said: Said,
) -> Arc<Mutex<Vec<String>>> {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // Whoever goes away has heard enough.
            let _ = answer(acceptor.accept(stream), &all, &said).await;
        }
    });
    asked
}

async fn answer(accepting: Accept<TcpStream>, all: &Mutex<Vec<String>>, said: &Said) -> std::io::Result<()> {
    let mut stream = accepting.await?;
    let mut text = String::new();
    while !is_whole(&text) {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).await?;
        text += &String::from_utf8_lossy(&part[..read]);
    }
    all.lock().push(text);
    let (status, body) = said.lock().clone();
    let head = format!("HTTP/1.1 {status} x\r\nRetry-After: 7\r\nContent-Length: {}\r\n", body.len());
    stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).await?;
    stream.shutdown().await
}

/// A server that answers every request alike, and keeps what it was asked.
async fn server(status: u16, body: String) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap();
    (place, serve(listener, certificate(&["anybody"]).1, Arc::new(Mutex::new((status, body)))))
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.to_lowercase().split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// What is said about a token, and what the server was asked.
async fn told(url: &str, audience: &str, status: u16, said: &str) -> (Result<Value, TokenError>, String) {
    told_by("hunter2", url, audience, status, said).await
}

/// The same, for somebody with this secret at the endpoint.
async fn told_by(
    secret: &str,
    url: &str,
    audience: &str,
    status: u16,
    said: &str,
) -> (Result<Value, TokenError>, String) {
    let (place, asked) = server(status, said.to_owned()).await;
    let tls = TlsFiles { is_unverified: true, ..TlsFiles::default() };
    let fetcher = Fetcher::finding(FetchPolicy { allows_private: true, tls, ..FetchPolicy::default() }, vec![place]);
    // A token of ours for the issuer, which nobody else is to see.
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "pod").unwrap();
    let endpoint = Endpoint { fetcher, token_file: Some(token_file) };
    let introspection = Introspection::new(endpoint, url, "app", secret).unwrap();
    let expected = Expected { issuer: String::new(), audience: audience.to_owned() };
    let claims = introspection.claims("opaque/+", &expected, NOW).await;
    let asked = asked.lock().join("\n");
    (claims.map(Value::Object), asked)
}

#[tokio::test]
async fn google_is_asked_in_its_own_way() {
    let said = json!({"sub": "7", "aud": "hive", "exp": "1500", "email": "a@b", "email_verified": "true", "scope": "s",
        "azp": "z", "expires_in": "500", "access_type": "online", "iss": "https://evil.example"});
    let (claims, asked) = told(GOOGLE, "hive", 200, &said.to_string()).await;
    assert!(asked.starts_with("GET /tokeninfo?access_token=opaque%2F%2B HTTP/1.1\r\n"), "{asked}");
    let expected = json!({"sub": "7", "aud": "hive", "exp": 1500, "email": "a@b", "email_verified": "true", "scope": "s",
        "azp": "z", "expires_in": "500", "iss": "https://accounts.google.com", "active": true});
    assert_eq!(claims.unwrap(), expected);
}

#[tokio::test]
async fn auth_trap_14_what_google_says_about_the_end_of_a_token_counts() {
    for (member, value, expected) in [
        ("exp", json!("999"), TokenError::Expired),
        ("exp", json!(1500), TokenError::Expired),
        ("exp", Value::Null, TokenError::Expired),
        ("aud", json!("other"), TokenError::Audience),
    ] {
        let mut said = json!({"sub": "7", "aud": "hive", "exp": "1500"});
        said[member] = value;
        assert_eq!(told(GOOGLE, "hive", 200, &said.to_string()).await.0.unwrap_err(), expected, "{said}");
    }
    for (status, said) in [(400, r#"{"error":"hunter2"}"#), (200, "<html>"), (500, "")] {
        let failed = TokenError::Unknown("failed to introspect opaque token");
        assert_eq!(told(GOOGLE, "hive", status, said).await.0.unwrap_err(), failed, "{said}");
    }
}

#[tokio::test]
async fn auth_trap_14_github_is_asked_in_its_own_way_and_names_no_end() {
    let said = json!({"user": {"id": 42, "login": "ann", "email": null, "name": "Ann", "type": "User", "site_admin": false},
        "scopes": ["repo", "gist"], "app": {"name": "Hive"}, "created_at": "2026-01-01T00:00:00Z", "token": "hunter2"});
    let (claims, asked) = told(GITHUB, "https://github.com", 200, &said.to_string()).await;
    assert!(asked.starts_with("POST /applications/app/token HTTP/1.1\r\n"), "{asked}");
    // app:hunter2
    assert!(asked.to_lowercase().contains("authorization: basic yxbwomh1bnrlcji="), "{asked}");
    assert!(asked.ends_with(r#"{"access_token":"opaque/+"}"#), "{asked}");
    let expected = json!({"iss": "https://github.com", "aud": "https://github.com", "sub": "42",
        "preferred_username": "ann", "login": "ann", "name": "Ann", "scopes": ["repo", "gist"], "scope": "repo gist",
        "user_type": "User", "site_admin": false, "app_name": "Hive", "iat": "2026-01-01T00:00:00Z", "active": true});
    assert_eq!(claims.unwrap(), expected);
}

#[tokio::test]
async fn what_github_does_not_know_is_not_active_and_its_limits_are_failures() {
    let failed = TokenError::Unknown("failed to introspect opaque token");
    for (status, said, expected) in [
        (404, "{}", TokenError::Inactive),
        (200, r#"{"user": {"id": "42"}}"#, TokenError::Inactive),
        (429, "hunter2", failed.clone()),
        (401, "hunter2", failed),
    ] {
        assert_eq!(told(GITHUB, "", status, said).await.0.unwrap_err(), expected, "{status}");
    }
}

#[tokio::test]
async fn our_token_for_the_issuer_is_for_nobody_else() {
    let good = json!({"active": true, "sub": "7", "exp": 1500}).to_string();
    for (url, is_shown) in [(GOOGLE, false), (GITHUB, false), ("https://issuer.example/introspect", true)] {
        let (_, asked) = told_by("", url, "", 200, &good).await;
        assert_eq!(asked.to_lowercase().contains("authorization: bearer pod"), is_shown, "{url}: {asked}");
        assert_eq!(asked.to_lowercase().contains("authorization"), is_shown, "{url}: {asked}");
    }
}

#[tokio::test]
async fn words_that_nobody_knows_are_asked_about_at_a_pace() {
    let (place, asked) = server(200, json!({"active": true, "sub": "7", "exp": 1500}).to_string()).await;
    let tls = TlsFiles { is_unverified: true, ..TlsFiles::default() };
    let fetcher = Fetcher::finding(FetchPolicy { allows_private: true, tls, ..FetchPolicy::default() }, vec![place]);
    let endpoint = Endpoint { fetcher, token_file: None };
    let mut introspection = Introspection::new(endpoint, "https://issuer.example/introspect", "", "").unwrap();
    // Three at once, and the next one a century later.
    introspection.pace = Pace::new(1e-10, 3.0);
    let ask = async |word: &str| introspection.claims(word, &Expected::default(), NOW).await.is_ok();
    assert!(ask("good").await);
    for number in 0..1000 {
        assert_eq!(ask(&number.to_string()).await, number < 2, "{number}");
    }
    assert_eq!(asked.lock().len(), 3);
    // What was good does not have to wait for words.
    assert!(ask("good").await);
    assert_eq!(asked.lock().len(), 4);
}

#[test]
fn only_their_own_addresses_are_those_of_google_and_github() {
    for (url, expected) in [
        (GOOGLE, Dialect::Google),
        ("https://oauth2.googleapis.com/tokeninfo/", Dialect::Standard),
        (GITHUB, Dialect::GitHub),
        ("http://api.github.com/applications/app/token", Dialect::Standard),
        ("https://api.github.com.evil.example/applications/app/token", Dialect::Standard),
        ("https://evil.example/api.github.com/applications/app/token", Dialect::Standard),
        ("https://api.github.com/applications/app/tokens", Dialect::Standard),
    ] {
        let fetcher = Fetcher::new(FetchPolicy::default()).unwrap();
        let introspection = Introspection::new(Endpoint { fetcher, token_file: None }, url, "", "").unwrap();
        assert_eq!(introspection.dialect, expected, "{url}");
    }
}
