//! Traps of incoming authentication that belong to no other file.

use futures::future::join_all;
use jsonwebtoken::Algorithm;
use serde_json::json;
use skep_proxy::middleware::{Audit, Authentication, Oidc, OidcSettings, Step};

use super::issuer::{Issuer, Key};
use super::{call_with, guarded};
use crate::http::{Request, call};
use crate::middleware::{Guarded, audit, with_tools};

#[tokio::test]
async fn auth_trap_2_keys_that_are_still_being_asked_for_are_no_error() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let guarded = guarded(&issuer.settings()).await;
    let token = key.sign(&issuer.claims());
    // Nobody has its keys yet, and everybody comes at once.
    let held = issuer.server.hold();
    let calls = join_all((0..30).map(|_| call_with(&guarded, &token)));
    let (answers, ()) = tokio::join!(calls, async {
        let asked = async {
            while issuer.asked().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::http::PATIENCE, asked).await.unwrap();
        drop(held);
    });
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(call_with(&guarded, &token).await.status, 200, "and whoever comes when they are there");
}

#[test]
fn auth_trap_5_google_is_not_asked_about_tokens_for_nobody() {
    let google = |audience: &str| OidcSettings {
        issuer: "https://accounts.google.com".to_owned(),
        introspection_url: "https://oauth2.googleapis.com/tokeninfo".to_owned(),
        audience: audience.to_owned(),
        ..OidcSettings::default()
    };
    for audience in ["", " ", "\t\n"] {
        let said = Oidc::new(&google(audience)).unwrap_err().to_string();
        assert!(said.contains("no Audience"), "{audience:?}: {said}");
    }
    assert!(Oidc::new(&google("us")).is_ok());
}

#[tokio::test]
async fn auth_trap_8_what_is_known_of_callers_never_mixes() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let folder = tempfile::tempdir().unwrap();
    let steps = vec![
        Step::Audit(Audit::new(audit::settings(&folder)).unwrap()),
        Step::Authenticate(Authentication::Oidc(Box::new(Oidc::new(&issuer.settings()).unwrap()))),
        Step::Parse,
    ];
    let guarded = Guarded::new(steps, with_tools).await;
    let calls = (0..40).map(|number| {
        let mut claims = issuer.claims();
        claims["sub"] = json!(format!("bee {number}"));
        claims["name"] = json!(format!("Bee {number}"));
        let post = Request::post(&call(number, "feed")).header("X-Request-ID", &number.to_string());
        guarded.send(post.header("Authorization", &format!("Bearer {}", key.sign(&claims))))
    });
    assert!(join_all(calls).await.iter().all(|answer| answer.status == 200));
    for record in audit::records(&folder, 40).await {
        let number = record["source"]["extra"]["request_id"].as_str().unwrap();
        let expected = (json!(format!("bee {number}")), json!(format!("Bee {number}")));
        assert_eq!((record["subjects"]["user_id"].clone(), record["subjects"]["user"].clone()), expected);
    }
}
