//! Servers of AWS, whose callers get credentials of a role.

mod independent;

use std::collections::HashMap;

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use skep_proxy::middleware::{Authentication, AwsSts, AwsStsSettings, Chain, Oidc, RoleMapping, RoleTest, Step};

use super::auth::issuer::{Issuer, Key};
use super::{Guarded, with_tools};
use crate::http::{Request, Response, call, modern};
use crate::transparent::server::{Before, Reply, Seen, Server, reply, with_sessions};

pub(super) fn arn(name: &str) -> String {
    format!("arn:aws:iam::123456789012:role/{name}")
}

/// Admins and owners of hives have roles; others have none.
pub(super) fn settings(endpoint: &str) -> AwsStsSettings {
    let mapping = |test, name: &str, priority| RoleMapping { test, role: arn(name), priority };
    AwsStsSettings {
        region: "eu-central-1".to_owned(),
        service: "aws-mcp".to_owned(),
        fallback_role: String::new(),
        role_mappings: vec![
            mapping(RoleTest::Matcher("claims.hives > 0".to_owned()), "owner", None),
            mapping(RoleTest::Claim("admins".to_owned()), "admin", Some(1)),
        ],
        role_claim: "groups".to_owned(),
        session_name_claim: "sub".to_owned(),
        session_duration: 900,
        endpoint: format!("http://{endpoint}"),
    }
}

/// A service that gives credentials which say whom they are for.
pub(super) fn giving(seen: &Seen) -> Reply {
    let asked = asked(seen);
    let end = time::OffsetDateTime::now_utc() + time::Duration::hours(1);
    let end = end.format(&time::format_description::well_known::Rfc3339).unwrap();
    let xml = format!(
        "<R><Credentials><AccessKeyId>KEY-{}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>{}</SessionToken>\
         <Expiration>{end}</Expiration></Credentials></R>",
        asked["RoleSessionName"], asked["RoleArn"]
    );
    reply(200, &[("content-type", "text/xml")], xml)
}

fn asked(seen: &Seen) -> HashMap<String, String> {
    url::form_urlencoded::parse(&seen.body).into_owned().collect()
}

/// A server of AWS whose callers prove who they are.
struct Signed {
    guarded: Guarded,
    issuer: Issuer,
    key: Key,
    service: Server,
}

impl Signed {
    async fn new() -> Self {
        Self::before(Guarded::new(vec![], with_tools).await).await
    }

    async fn before(guarded: Guarded) -> Self {
        let key = Key::new("k", Algorithm::ES256);
        let (issuer, service) = (Issuer::start(&[&key]).await, Server::start(giving).await);
        let signed = Self { guarded, issuer, key, service };
        signed.with(settings(&signed.service.address));
        signed
    }

    fn with(&self, settings: AwsStsSettings) {
        let oidc = Authentication::Oidc(Box::new(Oidc::new(&self.issuer.settings()).unwrap()));
        let steps = vec![Step::Authenticate(oidc), Step::Parse, Step::SignForAws(AwsSts::new(settings).unwrap())];
        self.guarded.middleware.replace(Chain::new(steps));
    }

    fn token(&self, claims: &Value) -> String {
        let mut all = self.issuer.claims();
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        self.key.sign(&all)
    }

    async fn send(&self, claims: &Value, request: Request) -> Response {
        self.guarded.send(request.header("Authorization", &format!("Bearer {}", self.token(claims)))).await
    }
}

#[tokio::test]
async fn a_request_is_signed_with_the_credentials_of_the_callers_role() {
    let signed = Signed::new().await;
    for (claims, name, role) in [
        (json!({"groups": ["users", "admins"]}), "ann", "admin"),
        (json!({"sub": "bob@hive", "hives": 2}), "bob@hive", "owner"),
        (json!({"sub": "cy", "hives": 2, "groups": ["admins"]}), "cy", "admin"),
    ] {
        assert_eq!(signed.send(&claims, Request::post(&call(1, "feed"))).await.status, 200);
        let seen = signed.guarded.server.seen().remove(0);
        let authorization = seen.header("authorization").unwrap();
        assert!(authorization.starts_with(&format!("AWS4-HMAC-SHA256 Credential=KEY-{name}/")), "{authorization}");
        assert!(authorization.contains("/eu-central-1/aws-mcp/aws4_request, "), "{authorization}");
        assert_eq!(seen.header("x-amz-security-token"), Some(&*arn(role)));
        let asked = asked(&signed.service.seen()[0]);
        let expected = [
            ("Action", "AssumeRoleWithWebIdentity".to_owned()),
            ("Version", "2011-06-15".to_owned()),
            ("RoleArn", arn(role)),
            ("RoleSessionName", name.to_owned()),
            ("DurationSeconds", "900".to_owned()),
        ];
        for (member, value) in expected {
            assert_eq!(asked[member], value, "{member}");
        }
        assert_eq!(asked["WebIdentityToken"].split('.').count(), 3);
    }
}

#[tokio::test]
async fn credentials_are_kept_for_one_caller_in_one_role() {
    let signed = Signed::new().await;
    let claims = |name: &str| signed.token(&json!({"sub": name, "groups": ["admins"]}));
    let (ann, bob) = (claims("ann"), claims("bob"));
    for (token, name, questions) in [(&ann, "ann", 1), (&ann, "ann", 0), (&bob, "bob", 1), (&ann, "ann", 0)] {
        let request = Request::post(&call(1, "feed")).header("Authorization", &format!("Bearer {token}"));
        assert_eq!(signed.guarded.send(request).await.status, 200);
        let seen = signed.guarded.server.seen().remove(0);
        assert!(seen.header("authorization").unwrap().contains(&format!("Credential=KEY-{name}/")));
        assert_eq!(signed.service.seen().len(), questions);
    }
    // Credentials that the server does not take are asked for again.
    signed.guarded.server.replace(|_| reply(403, &[], ""));
    for questions in [0, 1] {
        let request = Request::post(&call(1, "feed")).header("Authorization", &format!("Bearer {ann}"));
        assert_eq!(signed.guarded.send(request).await.status, 403);
        assert_eq!(signed.service.seen().len(), questions);
    }
}

#[tokio::test]
async fn auth_trap_20_a_client_can_neither_remove_nor_forge_a_signature() {
    let signed = Signed::new().await;
    let admin = json!({"groups": ["admins"]});
    let body = call(1, "feed");
    for (name, value) in [
        ("Connection", "X-Amz-Date, Authorization, X-Amz-Security-Token, keep-alive"),
        ("X-Amz-Date", "19700101T000000Z"),
        ("X-Amz-Security-Token", "forged"),
        ("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"),
        ("X-Forwarded-For", "1.2.3.4"),
    ] {
        assert_eq!(signed.send(&admin, Request::post(&body).header(name, value)).await.status, 200, "{name}");
        let seen = signed.guarded.server.seen().remove(0);
        let authorization = seen.header("authorization").unwrap();
        let names = authorization.split("SignedHeaders=").nth(1).unwrap().split(',').next().unwrap();
        assert!(names.contains("host;") && names.contains("x-amz-date;x-amz-security-token"), "{names}");
        assert!(!names.contains("forwarded") && !names.contains("sha256"), "{names}");
        assert_eq!(
            (seen.header("x-amz-security-token"), seen.headers.get_all("x-amz-date").iter().count()),
            (Some(&*arn("admin")), 1)
        );
        assert!(!seen.header("x-amz-date").unwrap().starts_with("1970"));
        assert_eq!((seen.header("x-amz-content-sha256"), seen.json()), (None, body.clone()));
        assert_eq!(seen.header("host"), Some(&*signed.guarded.server.address));
    }
}

#[tokio::test]
async fn auth_trap_23_whoever_cannot_be_signed_for_is_refused() {
    let signed = Signed::new().await;
    let refused = async |claims: &Value, status: u16, told: &str| {
        let mut answer = signed.send(claims, Request::post(&call(1, "feed"))).await;
        let text = answer.text().await;
        assert_eq!((answer.status, text.trim_end()), (status, told), "{claims}");
        assert!(signed.guarded.server.seen().is_empty() && signed.service.seen().is_empty());
    };
    refused(&json!({}), 403, "Failed to determine IAM role").await;
    refused(&json!({"groups": "admins"}), 403, "Failed to determine IAM role").await;
    // Names are not mended (auth trap 23).
    for name in ["a", "ann smith", "ann/../bob", "ann\u{e9}", &"a".repeat(65)] {
        refused(&json!({"sub": name, "groups": ["admins"]}), 401, "Invalid session name").await;
    }
    signed.with(AwsStsSettings { session_name_claim: "email".to_owned(), ..settings(&signed.service.address) });
    refused(&json!({"groups": ["admins"]}), 401, "Missing session name claim").await;
    refused(&json!({"groups": ["admins"], "email": 7}), 401, "Missing session name claim").await;
    let anybody = AwsStsSettings { fallback_role: arn("any"), ..settings(&signed.service.address) };
    for (steps, told) in [
        (vec![], "Authentication required"),
        (vec![Step::Authenticate(Authentication::Anonymous)], "Bearer token required"),
    ] {
        let step = Step::SignForAws(AwsSts::new(anybody.clone()).unwrap());
        signed.guarded.middleware.replace(Chain::new(steps.into_iter().chain([step]).collect()));
        let mut answer = signed.guarded.send(Request::post(&call(1, "feed"))).await;
        assert_eq!((answer.status, answer.text().await.trim_end()), (401, told));
    }
    assert!(signed.guarded.server.seen().is_empty());
}

#[tokio::test]
async fn a_service_that_fails_is_told_in_general_words() {
    let signed = Signed::new().await;
    let refused = async |failure: &str| {
        let mut answer = signed.send(&json!({"groups": ["admins"]}), Request::post(&call(1, "feed"))).await;
        let text = answer.text().await;
        assert_eq!((answer.status, text.as_str()), (401, "AWS credential exchange failed\n"), "{failure}");
        assert!(signed.guarded.server.seen().is_empty(), "{failure}");
    };
    for (failure, status, body) in [
        (
            "a refusal",
            400,
            "<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>".to_owned(),
        ),
        ("a denial", 403, "<ErrorResponse/>".to_owned()),
        ("garbage", 200, "{}".to_owned()),
        ("no credentials", 200, "<R><Credentials></Credentials></R>".to_owned()),
        ("ten megabytes", 200, "x".repeat(10 << 20)),
    ] {
        signed.service.replace(move |_| reply(status, &[], body.clone()));
        refused(failure).await;
    }
    let gone = Server::start(giving).await;
    signed.with(settings(&gone.address));
    gone.end().await;
    refused("nobody there").await;
}

#[tokio::test]
async fn a_slow_service_keeps_nobody_waiting_who_has_credentials() {
    let signed = Signed::new().await;
    let known = format!("Bearer {}", signed.token(&json!({"groups": ["admins"]})));
    let call_again =
        async || signed.guarded.send(Request::post(&call(1, "feed")).header("Authorization", &known)).await.status;
    assert_eq!(call_again().await, 200);
    signed.service.seen();
    let held = signed.service.hold();
    let bob = json!({"groups": ["admins"], "sub": "bob"});
    let (late, ()) = tokio::join!(signed.send(&bob, Request::post(&call(1, "feed"))), async {
        let asked = async {
            while signed.service.seen().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::http::PATIENCE, asked).await.unwrap();
        assert_eq!(call_again().await, 200, "while another one waits");
        drop(held);
    });
    assert_eq!(late.status, 200);
}

/// A proxy that speaks with a server of an older era for its client signs what it says there itself.
#[tokio::test]
async fn everything_that_goes_to_the_server_is_signed() {
    let sessions = with_sessions("a");
    let discovers = |seen: &Seen| seen.json()["method"] == "server/discover";
    let server = Server::start(move |seen| if discovers(seen) { reply(400, &[], "") } else { sessions(seen) }).await;
    let (before, middleware) = Before::chained_remote(&server).await;
    let mut signed = Signed::before(Guarded { server, before, middleware }).await;
    let admin = json!({"groups": ["admins"]});
    let call = modern(1, "tools/call", json!({"name": "feed", "arguments": {}}));
    assert_eq!(signed.send(&admin, call).await.status, 200);
    signed.guarded.before.stop().await;
    let seen = signed.guarded.server.seen();
    let is_there = |word: &str| seen.iter().any(|seen| seen.method == word || seen.json()["method"] == word);
    for word in ["server/discover", "initialize", "notifications/initialized", "tools/call", "DELETE"] {
        assert!(is_there(word), "{word}: {seen:?}");
    }
    for request in &seen {
        let authorization = request.header("authorization").unwrap_or_default();
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=KEY-ann/"), "{request:?}");
    }
}

/// Where nobody proves anything to us, the token that is good for a role is all that tells callers apart.
#[tokio::test]
async fn callers_whose_roles_nobody_has_checked_share_no_session() {
    let sessions = with_sessions("a");
    let discovers = |seen: &Seen| seen.json()["method"] == "server/discover";
    let server = Server::start(move |seen| if discovers(seen) { reply(400, &[], "") } else { sessions(seen) }).await;
    let service = Server::start(giving).await;
    let (before, middleware) = Before::chained_remote(&server).await;
    let settings = AwsStsSettings { fallback_role: arn("any"), ..settings(&service.address) };
    let steps = vec![
        Step::Authenticate(Authentication::Anonymous),
        Step::Parse,
        Step::SignForAws(AwsSts::new(settings).unwrap()),
    ];
    middleware.replace(Chain::new(steps));
    let ask = async |token: &str| {
        let post = modern(1, "tools/list", json!({})).header("X-Api-Key", "of all");
        let post = post.header("Authorization", &format!("Bearer {token}"));
        before.send(post).await.json().await["result"]["session"].as_str().unwrap().to_owned()
    };
    let (ann, bob) = (ask("ann's").await, ask("bob's").await);
    assert_ne!(ann, bob);
    assert_eq!((ask("ann's").await, ask("bob's").await), (ann, bob));
}
