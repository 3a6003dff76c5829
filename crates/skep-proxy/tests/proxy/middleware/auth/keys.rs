//! The keys of an issuer: found late, replaced, missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use jsonwebtoken::Algorithm;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use skep_proxy::middleware::{Oidc, OidcSettings};
use tokio_rustls::TlsAcceptor;

use super::issuer::{Issuer, Key};
use super::{call_with, check_refused, guarded};
use crate::middleware::Guarded;
use crate::warnings::Warnings;

#[tokio::test]
async fn auth_trap_1_a_failure_is_not_remembered() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let guarded = guarded(&issuer.settings()).await;
    let token = key.sign(&issuer.claims());
    for failure in [(503, "later"), (200, r#"{"issuer":"x"}"#), (200, r#"{"jwks_uri":""}"#), (302, "")] {
        issuer.fail(Some(failure));
        check_refused(failure.1, call_with(&guarded, &token).await, &issuer.url, "OIDC discovery failed").await;
    }
    issuer.fail(None);
    assert_eq!(call_with(&guarded, &token).await.status, 200);
}

#[tokio::test]
async fn a_key_set_that_is_none_is_told_and_asked_for_again() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let settings = OidcSettings { key_set_url: format!("{}/keys", issuer.url), ..issuer.settings() };
    let guarded = guarded(&settings).await;
    let token = key.sign(&issuer.claims());
    for failure in [(500, "no"), (200, "{}"), (200, r#"{"keys":{}}"#), (204, ""), (404, "")] {
        issuer.fail(Some(failure));
        check_refused(failure.1, call_with(&guarded, &token).await, &issuer.url, "failed to fetch JWKS").await;
    }
    issuer.fail(None);
    assert_eq!(call_with(&guarded, &token).await.status, 200);
}

#[tokio::test]
async fn a_key_set_without_a_key_that_could_be_used_is_told() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let settings = OidcSettings {
        // Nobody is asked there, because the place of the keys is known.
        issuer: "https://bee:hunter2@issuer.example".to_owned(),
        key_set_url: format!("{}/keys?key=hunter2", issuer.url),
        ..issuer.settings()
    };
    let token = key.sign(&issuer.claims());
    let log = Warnings::listen();
    let guarded = guarded(&settings).await;
    issuer.fail(Some((500, "")));
    assert_eq!(call_with(&guarded, &token).await.status, 401);
    let failing = log.take();
    let is_told = |line: &String| line.contains("issuer=https://issuer.example") && line.contains("status 500");
    assert!(failing.iter().any(is_told) && !format!("{failing:?}").contains("hunter2"), "{failing:?}");
    issuer.fail(Some((200, r#"{"keys":[{"kid":"k","kty":"oct","k":"AAAA"}]}"#)));
    for _ in 0..3 {
        assert_eq!(call_with(&guarded, &token).await.status, 401);
    }
    let log = log.take();
    let told = log.iter().filter(|line| line.contains("no token can be checked with the key set"));
    assert!(told.clone().count() == 1 && told.clone().all(|line| line.contains("/keys\"")), "{log:?}");
    assert!(!format!("{log:?}").contains("hunter2"), "{log:?}");
}

#[tokio::test]
async fn whoever_waits_for_a_slow_issuer_keeps_nobody_else_waiting() {
    let (known, new) = (Key::new("known", Algorithm::ES256), Key::new("new", Algorithm::ES256));
    let issuer = Issuer::start(&[&known]).await;
    let guarded = guarded(&issuer.settings()).await;
    let by_known = known.sign(&issuer.claims());
    assert_eq!(call_with(&guarded, &by_known).await.status, 200);
    issuer.asked();
    issuer.publish(&[&known, &new]);
    let held = issuer.server.hold();
    let by_new = new.sign(&issuer.claims());
    let waiting = call_with(&guarded, &by_new);
    tokio::pin!(waiting);
    // The issuer has been asked, and says nothing yet.
    let asked = async {
        while issuer.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = &mut waiting => panic!("{answer:?}"),
        () = asked => {}
    }
    for _ in 0..10 {
        tokio::select! {
            answer = &mut waiting => panic!("{answer:?}"),
            answer = call_with(&guarded, &by_known) => assert_eq!(answer.status, 200),
        }
    }
    drop(held);
    assert_eq!(waiting.await.status, 200);
}

#[tokio::test]
async fn one_request_asks_for_all() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let guarded = guarded(&issuer.settings()).await;
    let token = key.sign(&issuer.claims());
    let answers = join_all((0..40).map(|_| call_with(&guarded, &token))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(issuer.asked(), ["/.well-known/openid-configuration", "/keys"]);
}

/// Replaces the keys of an issuer while many callers come with the old one and with the new one. What those with the old one
/// were told, and what the issuer was asked meanwhile; those with the new one have passed.
async fn under_load(issuer: &Issuer, guarded: &Guarded, (by_old, by_new): (&str, &str)) -> (Vec<u16>, Vec<String>) {
    const EACH: usize = 20;
    // All of them are there before the issuer says anything about the new key.
    let held = issuer.server.hold();
    let arrived = AtomicUsize::new(0);
    let tokens = [by_old, by_new].repeat(EACH);
    let answering = join_all(tokens.into_iter().map(async |token| {
        arrived.fetch_add(1, Ordering::SeqCst);
        call_with(guarded, token).await.status
    }));
    let releasing = async {
        let mut asked = Vec::new();
        while asked.is_empty() || arrived.load(Ordering::SeqCst) < 2 * EACH {
            asked.extend(issuer.asked());
            tokio::task::yield_now().await;
        }
        drop(held);
        asked
    };
    let (statuses, mut asked) = tokio::join!(answering, releasing);
    asked.extend(issuer.asked());
    let (old, new): (Vec<_>, Vec<_>) = statuses.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    assert_eq!(new, [200; EACH]);
    (old, asked)
}

#[tokio::test]
async fn auth_trap_16_a_key_that_is_added_under_load_is_taken_at_once() {
    let (old, new) = (Key::new("old", Algorithm::RS256), Key::new("new", Algorithm::ES384));
    let issuer = Issuer::start(&[&old]).await;
    let guarded = guarded(&issuer.settings()).await;
    let (by_old, by_new) = (old.sign(&issuer.claims()), new.sign(&issuer.claims()));
    assert_eq!(call_with(&guarded, &by_old).await.status, 200);
    assert_eq!(issuer.asked(), ["/.well-known/openid-configuration", "/keys"]);
    issuer.publish(&[&old, &new]);
    let (statuses, asked) = under_load(&issuer, &guarded, (&by_old, &by_new)).await;
    assert_eq!((statuses, asked), (vec![200; 20], vec!["/keys".to_owned()]));
    issuer.publish(&[&new]);
    assert_eq!(call_with(&guarded, &by_old).await.status, 200, "nobody has asked yet, and the key was good");
}

#[tokio::test]
async fn auth_trap_16_a_key_that_is_replaced_under_load_is_good_until_that_is_known_and_never_again() {
    let (old, new) = (Key::new("old", Algorithm::RS256), Key::new("new", Algorithm::ES384));
    let issuer = Issuer::start(&[&old]).await;
    let guarded = guarded(&issuer.settings()).await;
    let (by_old, by_new) = (old.sign(&issuer.claims()), new.sign(&issuer.claims()));
    assert_eq!(call_with(&guarded, &by_old).await.status, 200);
    issuer.asked();
    issuer.publish(&[&new]);
    let (statuses, mut asked) = under_load(&issuer, &guarded, (&by_old, &by_new)).await;
    assert!(statuses.iter().all(|status| [200, 401].contains(status)), "{statuses:?}");
    guarded.server.seen();
    for _ in 0..10 {
        let (refused, passed) = tokio::join!(call_with(&guarded, &by_old), call_with(&guarded, &by_new));
        check_refused("replaced", refused, &issuer.url, "key ID not found in JWKS").await;
        assert_eq!(passed.status, 200);
    }
    assert_eq!(guarded.server.seen().len(), 10, "nothing by the old key reaches the server");
    asked.extend(issuer.asked());
    assert_eq!(asked, ["/keys"], "one asks for all, and nobody again for the key that is gone");
}

#[tokio::test]
async fn keys_that_nobody_has_do_not_make_us_ask_and_ask() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let guarded = guarded(&issuer.settings()).await;
    assert_eq!(call_with(&guarded, &key.sign(&issuer.claims())).await.status, 200);
    for number in 0..20 {
        let mut unknown = key.clone();
        unknown.id = format!("unknown-{number}");
        assert_eq!(call_with(&guarded, &unknown.sign(&issuer.claims())).await.status, 401);
    }
    assert_eq!(issuer.asked(), ["/.well-known/openid-configuration", "/keys", "/keys"]);
}

/// An authority, and a listener's certificate of it.
fn certificates() -> (String, TlsAcceptor) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let own = own.signed_by(&key, &rcgen::Issuer::new(authority, authority_key)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let private = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![own.der().clone()], private).unwrap();
    (root, TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn auth_trap_3_an_issuer_of_a_private_authority_is_trusted_for_all_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (root, acceptor) = certificates();
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start_with(Some(acceptor), &[&key]).await;
    let (trusted, token_file) = (folder.path().join("ca.crt"), folder.path().join("token"));
    std::fs::write(&trusted, &root).unwrap();
    std::fs::write(&token_file, " first \n").unwrap();
    let settings = OidcSettings { allows_http: false, ..issuer.settings() };
    let token = key.sign(&issuer.claims());
    let untrusting = guarded(&settings).await;
    assert_eq!(call_with(&untrusting, &token).await.status, 401);
    issuer.asked();
    let settings = OidcSettings { authorities_file: Some(trusted), token_file: Some(token_file.clone()), ..settings };
    let trusting = guarded(&settings).await;
    // Such tokens are replaced while a proxy runs.
    std::fs::write(&token_file, "second\n").unwrap();
    assert_eq!(call_with(&trusting, &token).await.status, 200);
    let shown: Vec<_> = issuer.server.seen();
    assert_eq!(shown.len(), 2);
    assert!(shown.iter().all(|seen| seen.header("authorization") == Some("Bearer second")));
}

#[test]
fn settings_that_cannot_work_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::write(&empty, " \n").unwrap();
    let issuer = || OidcSettings { issuer: "https://i".to_owned(), ..OidcSettings::default() };
    let google = "https://oauth2.googleapis.com/tokeninfo".to_owned();
    for (settings, told) in [
        (OidcSettings::default(), "neither an Issuer nor a JWKSURL"),
        (
            OidcSettings { authorities_file: Some("/no/such/file".into()), ..issuer() },
            "CACertPath: cannot read /no/such/file",
        ),
        (OidcSettings { authorities_file: Some(empty.clone()), ..issuer() }, "CACertPath: "),
        (OidcSettings { token_file: Some("/no/such/file".into()), ..issuer() }, "AuthTokenFile /no/such/file"),
        (OidcSettings { token_file: Some(empty), ..issuer() }, "is empty"),
        (OidcSettings { introspection_url: google, audience: " ".to_owned(), ..issuer() }, "no Audience"),
        (OidcSettings { key_set_url: "http://a b".to_owned(), ..issuer() }, "JWKSURL is no URL"),
        (OidcSettings { issuer: "nope".to_owned(), ..issuer() }, "Issuer: nope is no address of the form https://HOST"),
        (OidcSettings { resource_url: "mcp".to_owned(), ..issuer() }, "ResourceURL is no URL"),
        (
            OidcSettings { issuer: "http://10.0.0.1".to_owned(), ..issuer() },
            "plain http is not allowed; set InsecureAllowHTTP and AllowPrivateIP to allow it",
        ),
        (
            OidcSettings { introspection_url: "https://169.254.169.254/".to_owned(), ..issuer() },
            "IntrospectionURL: 169.254.169.254 is at a private, link-local or reserved address, which is not allowed",
        ),
        (
            OidcSettings { introspection_url: "https://bee:honey@h/".to_owned(), ..issuer() },
            "IntrospectionURL: the address at h carries a user name",
        ),
        (
            OidcSettings { key_set_url: "https://bee:honey@h/".to_owned(), ..issuer() },
            "JWKSURL: the address at h carries a user name",
        ),
        (
            OidcSettings { issuer: "http://bee:honey@h".to_owned(), allows_http: true, ..issuer() },
            "Issuer: the address at h carries a user name",
        ),
        (OidcSettings { issuer: "http://bee:ho ney@h".to_owned(), allows_http: true, ..issuer() }, "Issuer is no URL"),
    ] {
        let log = Warnings::listen();
        let said = Oidc::new(&settings).unwrap_err().to_string();
        assert!(said.contains(told), "{said}");
        assert!(!format!("{said} {:?}", log.take()).contains("ney"), "{said}");
    }
}
