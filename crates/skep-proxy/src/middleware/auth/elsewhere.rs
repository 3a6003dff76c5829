//! Names that tests lead where they like: to a Google and a GitHub with which something is wrong, and inside. What callers are
//! told then.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};

use super::introspection::GOOGLE;
use super::introspection::tests::{GITHUB, certificate, serve};
use super::{Oidc, OidcSettings, token};
use crate::answer::{self, Answer};
use crate::fetch::inside::{BARRED_ADDRESSES, BARRED_FORMS, OWN_ADDRESSES, OWN_FORMS};
use crate::fetch::tests::{ok, redirect, server};
use crate::fetch::{Fetcher, resolve};
use crate::limits::Limits;
use crate::listener::Peer;
use crate::middleware::exchange::Exchange;
use crate::middleware::layer::{Destination, Layer as _, Next};
use crate::upload::{Sent, Upload};

const NO_DISCOVERY: &str = "OIDC discovery failed";
const NO_KEYS: &str = "failed to fetch JWKS";
const NO_INTROSPECTION: &str = "failed to introspect opaque token";

/// What is behind the chain.
struct Server;

impl Destination for Server {
    fn answer<'a>(&'a self, _exchange: Box<Exchange<'a>>) -> BoxFuture<'a, Answer> {
        Box::pin(async { answer::empty(StatusCode::NO_CONTENT) })
    }
}

async fn call_with(oidc: &Oidc, token: &str) -> Answer {
    let limits = Limits::default();
    let peer = Peer { address: SocketAddr::from(([127, 0, 0, 1], 1)), scheme: "http" };
    let request = Request::post("/mcp").header(AUTHORIZATION, format!("Bearer {token}"));
    let exchange = Exchange::new(peer, request.body(Upload::Read(Sent::default())).unwrap(), &limits);
    oidc.pass(exchange, Next::new(&[], &Server)).await
}

/// Checks that somebody is refused in these words, and in no others.
async fn check_refused(row: &str, oidc: &Oidc, shown: &str, told: &str) {
    let answer = call_with(oidc, shown).await;
    let realm = &oidc.challenge.realm;
    let place = "https://hive.example/.well-known/oauth-protected-resource/mcp";
    let header = format!(
        "Bearer realm=\"{realm}\", resource_metadata=\"{place}\", error=\"invalid_token\", error_description=\"{told}\""
    );
    let challenge = answer.headers()[WWW_AUTHENTICATE].to_str().unwrap();
    assert_eq!((answer.status().as_u16(), challenge), (401, &*header), "{row}");
    let body: Value = serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let told = format!("Invalid token: {told}");
    assert_eq!(body, json!({"error": "invalid_token", "error_description": told}), "{row}");
}

fn settings(issuer: &str) -> OidcSettings {
    OidcSettings {
        issuer: issuer.to_owned(),
        resource_url: "https://hive.example/mcp".to_owned(),
        ..OidcSettings::default()
    }
}

/// A token whose key somebody has to be asked for.
fn signed() -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(r#"{"alg":"RS256","kid":"k"}"#), part("{}"), part("x"))
}

/// What is wrong with somebody.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Absence,
    Silence,
    Garbage,
    Megabytes,
}

async fn check_fault(url: &str, issuer: &str, good: &Value, fault: Fault) {
    let row = format!("{url}, {fault:?}");
    let folder = tempfile::tempdir().unwrap();
    let (authority, acceptor) = certificate(&["oauth2.googleapis.com", "api.github.com"]);
    let trusted = folder.path().join("ca.crt");
    std::fs::write(&trusted, authority).unwrap();
    let said = match fault {
        Fault::Garbage => "<html>".to_owned(),
        Fault::Megabytes => format!("{good}{}", " ".repeat(10 << 20)),
        Fault::Absence | Fault::Silence => good.to_string(),
    };
    let (said, socket) = (Arc::new(Mutex::new((200, said))), TcpSocket::new_v4().unwrap());
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let settings = OidcSettings {
        audience: good["aud"].as_str().unwrap_or(issuer).to_owned(),
        introspection_url: url.to_owned(),
        authorities_file: Some(trusted),
        allows_private: true,
        ..settings(issuer)
    };
    let places = vec![socket.local_addr().unwrap()];
    let oidc = Oidc::asking(&settings, |policy| Ok(Fetcher::finding(policy, places))).unwrap();
    match fault {
        Fault::Absence => {
            check_refused(&row, &oidc, "opaque", NO_INTROSPECTION).await;
            serve(socket.listen(8).unwrap(), acceptor, Arc::clone(&said));
        }
        Fault::Silence => {
            let listener = socket.listen(8).unwrap();
            tokio::time::pause();
            check_refused(&row, &oidc, "opaque", NO_INTROSPECTION).await;
            tokio::time::resume();
            serve(listener, acceptor, Arc::clone(&said));
        }
        Fault::Garbage | Fault::Megabytes => {
            serve(socket.listen(8).unwrap(), acceptor, Arc::clone(&said));
            check_refused(&row, &oidc, "opaque", NO_INTROSPECTION).await;
        }
    }
    said.lock().1 = good.to_string();
    assert_eq!(call_with(&oidc, "opaque").await.status(), StatusCode::NO_CONTENT, "{row}: nothing is wrong any more");
}

#[tokio::test]
async fn whatever_is_wrong_with_google_or_github_is_told_in_the_same_words() {
    #[expect(clippy::cast_possible_truncation, reason = "seconds are far below what an integer can hold")]
    let end = token::now() as i64 + 600;
    let google = json!({"sub": "7", "aud": "hive", "exp": end.to_string()});
    let github = json!({"user": {"id": 42, "login": "ann"}});
    for fault in [Fault::Absence, Fault::Silence, Fault::Garbage, Fault::Megabytes] {
        check_fault(GOOGLE, "https://accounts.google.com", &google, fault).await;
        check_fault(GITHUB, "https://github.com", &github, fault).await;
    }
}

/// Names of machines that answer machines about themselves.
const CLOUDS: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.google.internal.",
    "Metadata.Google.Internal",
    "METADATA.GOOGLE.INTERNAL.",
    "metadata.goog",
    "metadata.goog.",
    "instance-data",
    "instance-data.",
    "instance-data.ec2.internal",
    "Instance-Data.EC2.Internal.",
    "metadata.azure.internal",
    "169.254.169.254.",
    "2852039166.",
];
/// Names of this machine.
const OWN: &[&str] = &[
    "localhost",
    "localhost.",
    "LOCALHOST.",
    "login.localhost",
    "login.localhost.",
    "localhost.localdomain",
    "ip6-localhost",
    "127.0.0.1.",
    "127.1.",
];

/// Time does not matter where nobody is asked.
#[tokio::test(start_paused = true)]
async fn auth_trap_15_no_name_makes_us_ask_inside_and_callers_are_told_nothing_of_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap();
    let metadata = ["169.254.169.254:0", "100.100.100.200:0", "168.63.129.16:0", "[fd00:ec2::254]:0"];
    let metadata = metadata.map(|place| place.parse().unwrap());
    let named = |names: &'static [&'static str], place: SocketAddr, allows_private: bool| {
        names.iter().map(move |name| (*name, place, allows_private))
    };
    let clouds = metadata.into_iter().flat_map(|place| named(CLOUDS, place, false).chain(named(CLOUDS, place, true)));
    for (name, place, allows_private) in clouds.chain(named(OWN, own, false)) {
        let row = format!("{name} at {place}, {allows_private}");
        let issuer = format!("https://{name}");
        let settings = OidcSettings { introspection_url: format!("{issuer}/"), allows_private, ..settings(&issuer) };
        let oidc = Oidc::asking(&settings, |policy| Ok(Fetcher::finding(policy, vec![place]))).unwrap();
        check_refused(&row, &oidc, &signed(), NO_DISCOVERY).await;
        check_refused(&row, &oidc, "opaque", NO_INTROSPECTION).await;
    }
    let reached = tokio::time::timeout(std::time::Duration::from_secs(1), listener.accept()).await;
    assert!(reached.is_err(), "somebody was asked");
}

#[tokio::test]
async fn auth_trap_15_no_word_of_an_issuer_makes_us_ask_inside() {
    let (inside, reached, _) = server("127.0.0.1", ok(r#"{"keys":[]}"#)).await;
    let issuer = format!("http://{}", resolve::OUTSIDE_NAME);
    for host in [OWN_ADDRESSES, OWN_FORMS, BARRED_ADDRESSES, BARRED_FORMS, &["127.0.0.1.", "169.254.169.254."]].concat()
    {
        let keys = format!("http://{host}:{}/keys", inside.port());
        let document = json!({"jwks_uri": keys}).to_string();
        let known = OidcSettings { allows_http: true, ..settings(&issuer) };
        let redirected = OidcSettings { key_set_url: format!("{issuer}/keys"), ..known.clone() };
        for (settings, said) in [(known, ok(&document)), (redirected, redirect(&keys))] {
            let (outside, asked, _) = server(resolve::OUTSIDE, said).await;
            let oidc = Oidc::asking(&settings, |policy| Ok(Fetcher::from_outside(policy, outside))).unwrap();
            check_refused(&keys, &oidc, &signed(), NO_KEYS).await;
            assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 1, "{keys}");
        }
    }
    assert_eq!(reached.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn auth_trap_15_a_name_that_leads_elsewhere_later_on_makes_us_ask_nobody_there() {
    let issuer = "http://login.example";
    let document = json!({"jwks_uri": format!("{issuer}/keys")}).to_string();
    // Each answer ends its connection, so that the name is looked up again.
    let (place, asked, _) = server("127.0.0.1", ok(&document)).await;
    let later = SocketAddr::from(([169, 254, 169, 254], place.port()));
    let settings = OidcSettings { allows_http: true, allows_private: true, ..settings(issuer) };
    let oidc = Oidc::asking(&settings, |policy| Ok(Fetcher::finding(policy, vec![place, later]))).unwrap();
    check_refused("rebound", &oidc, &signed(), NO_KEYS).await;
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 1);
}
