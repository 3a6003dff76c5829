//! Keys that are old, and an issuer that takes its time.

use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::RwLock;

use super::*;
use crate::fetch::{FetchPolicy, Fetcher};

const PATIENT: Duration = Duration::from_mins(1);

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key set, and a token that its one key has signed.
fn signed() -> (String, String) {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let point = &pair.public_key().as_ref()[1..];
    let key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": encode(&point[..32]), "y": encode(&point[32..])});
    let signed = format!("{}.{}", encode(br#"{"alg":"ES256","kid":"k"}"#), encode(b"{}"));
    let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
    (json!({ "keys": [key] }).to_string(), format!("{signed}.{}", encode(signature.as_ref())))
}

/// An issuer that publishes this, counts who asks, and answers while nobody holds the gate.
async fn issuer(published: String) -> (Uri, Arc<AtomicUsize>, Arc<RwLock<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
    let (asked, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(RwLock::new(())));
    let (count, open) = (Arc::clone(&asked), Arc::clone(&gate));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (count, open, published) = (Arc::clone(&count), Arc::clone(&open), published.clone());
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                count.fetch_add(1, Ordering::SeqCst);
                drop(open.read().await);
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", published.len());
                let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n{published}").as_bytes()).await;
            });
        }
    });
    (place, asked, gate)
}

/// Keys of that issuer, which are old as soon as they are there.
fn old_at_once(place: Uri) -> Keys {
    let policy = FetchPolicy { allows_private: true, allows_http: true, ..FetchPolicy::default() };
    let endpoint = Endpoint { fetcher: Fetcher::new(policy).unwrap(), token_file: None };
    Keys::kept_for(Duration::ZERO, endpoint, "https://issuer.example", Some(place))
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENT, waiting).await.unwrap();
}

#[tokio::test]
async fn old_keys_are_used_while_newer_ones_are_asked_for_once() {
    let (published, token) = signed();
    let (place, asked, gate) = issuer(published).await;
    let keys = old_at_once(place);
    let token = SignedToken::read(&token).unwrap();
    keys.verify(&token).await.unwrap();
    let first = keys.source.fetched.load_full().unwrap();
    let held = gate.write().await;
    for _ in 0..20 {
        keys.verify(&token).await.unwrap();
    }
    until(|| asked.load(Ordering::SeqCst) == 2).await;
    drop(held);
    until(|| !Arc::ptr_eq(&first, &keys.source.fetched.load_full().unwrap())).await;
    // The new ones are old, too, and yet nobody asks again so soon.
    for _ in 0..20 {
        keys.verify(&token).await.unwrap();
    }
    until(|| {
        let mut renewing = keys.renewing.lock();
        while renewing.try_join_next().is_some() {}
        renewing.is_empty()
    })
    .await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn whoever_misses_a_key_while_old_ones_are_renewed_waits_for_that_and_then_asks_once() {
    let (published, token) = signed();
    let (place, asked, gate) = issuer(published).await;
    let keys = old_at_once(place);
    let known = SignedToken::read(&token).unwrap();
    keys.verify(&known).await.unwrap();
    let held = gate.write().await;
    let missing = SignedToken { key_id: "another".to_owned(), ..SignedToken::read(&token).unwrap() };
    let missing = keys.verify(&missing);
    tokio::pin!(missing);
    assert!(futures::poll!(&mut missing).is_pending());
    until(|| asked.load(Ordering::SeqCst) == 2).await;
    drop(held);
    assert_eq!(missing.await, Err(TokenError::UnknownKey));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    for _ in 0..20 {
        let missing = SignedToken { key_id: "another".to_owned(), ..SignedToken::read(&token).unwrap() };
        assert_eq!(keys.verify(&missing).await, Err(TokenError::UnknownKey));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

/// The name of an issuer leads to it first, and to where a cloud answers machines about themselves later on.
#[tokio::test]
async fn auth_trap_15_an_issuer_whose_name_leads_elsewhere_later_on_is_not_asked() {
    let (published, token) = signed();
    let (place, asked, _) = issuer(published).await;
    let port = place.port_u16().unwrap();
    let metadata = ([169, 254, 169, 254], port).into();
    let policy = FetchPolicy { allows_private: true, allows_http: true, ..FetchPolicy::default() };
    let fetcher = Fetcher::finding(policy, vec![([127, 0, 0, 1], port).into(), metadata]);
    let place = format!("http://issuer.example:{port}/keys").parse().unwrap();
    let keys = Keys::new(Endpoint { fetcher, token_file: None }, "https://issuer.example", Some(place));
    let known = SignedToken::read(&token).unwrap();
    keys.verify(&known).await.unwrap();
    let missing = SignedToken { key_id: "another".to_owned(), ..SignedToken::read(&token).unwrap() };
    assert_eq!(keys.verify(&missing).await, Err(TokenError::UnknownKey));
    let failure = keys.source.attempts.lock().failure;
    assert_eq!((failure, asked.load(Ordering::SeqCst)), (Some("failed to fetch JWKS"), 1));
    keys.verify(&known).await.unwrap();
}

#[test]
fn an_issuer_says_how_long_its_keys_are_good_for() {
    let day = 24 * 3600;
    for (told, expected) in [
        (&[][..], 15 * 60),
        (&[("cache-control", "public, Max-Age=86400")], day),
        (&[("cache-control", "max-age=1")], 15 * 60),
        (&[("cache-control", "max-age=99999999")], 30 * day),
        (&[("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("expires", "Mon, 07 Nov 1994 08:49:37 GMT")], day),
        (
            &[
                ("cache-control", "max-age=3600"),
                ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("expires", "Mon, 07 Nov 1994 08:49:37 GMT"),
            ],
            3600,
        ),
        (&[("expires", "0")], 15 * 60),
        (&[("expires", "Sun, 06 Nov 1994 08:49:37 GMT")], 15 * 60),
    ] {
        let headers = told.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        assert_eq!(lifetime(&headers.collect(), SHORTEST), Duration::from_secs(expected), "{told:?}");
    }
}
