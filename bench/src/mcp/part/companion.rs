//! Everybody whom a chain asks, played by one server that answers at once: an issuer with its keys, an endpoint that knows
//! tokens and one that exchanges them, a service with credentials of AWS, a decision point, callbacks, and a collector.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What tokens say about who issued them, and for whom.
pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const AUDIENCE: &str = "https://hive.example/mcp";

pub(super) const KEYS: &str = "/keys";
pub(super) const INTROSPECTION: &str = "/introspection";
pub(super) const TOKENS: &str = "/token";
/// Gives credentials of a role.
pub(super) const ROLES: &str = "/roles";
/// Where the authorizer asks for decisions.
const DECISION: &str = "/decision";
/// A callback that adds something to every call.
pub(super) const CHANGING: &str = "/changing";
/// A callback that allows everything.
pub(super) const CHECKING: &str = "/checking";

/// Long after every measurement.
const END: u64 = 4_000_000_000;
/// The same, as AWS writes it.
const END_TEXT: &str = "2096-10-02T07:06:40Z";

/// What it says, each time the same.
#[derive(Debug)]
struct Answers {
    keys: Bytes,
    token: Bytes,
    issued: Bytes,
    credentials: Bytes,
    decided: Bytes,
    changed: Bytes,
    allowed: Bytes,
}

impl Answers {
    fn new(key: &Value) -> Self {
        let said = |value: Value| Bytes::from(value.to_string());
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        let patch = json!([{"op": "add", "path": "/mcp_request/params/arguments/seen", "value": true}]);
        Self {
            keys: said(json!({ "keys": [key] })),
            token: said(json!({"active": true, "sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": END})),
            issued: said(json!({
                "access_token": "theirs", "token_type": "Bearer", "issued_token_type": kind, "expires_in": 3600,
            })),
            credentials: credentials().into(),
            decided: said(json!({ "allow": true })),
            changed: said(json!({"allowed": true, "patch_type": "json_patch", "patch": patch})),
            allowed: said(json!({ "allowed": true })),
        }
    }

    fn to(&self, path: &str, asked: &[u8]) -> Bytes {
        let is_call = || memchr::memmem::find(asked, b"\"tools/call\"").is_some();
        let answer = match path {
            KEYS => &self.keys,
            INTROSPECTION => &self.token,
            TOKENS => &self.issued,
            ROLES => &self.credentials,
            DECISION => &self.decided,
            CHANGING if is_call() => &self.changed,
            CHANGING | CHECKING => &self.allowed,
            // A collector has nothing to say.
            _ => return Bytes::new(),
        };
        answer.clone()
    }
}

/// The credentials of a role.
fn credentials() -> String {
    // It is long, and signed with every request.
    let token = "honey".repeat(160);
    format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
         <AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>honey</SecretAccessKey>\
         <SessionToken>{token}</SessionToken><Expiration>{END_TEXT}</Expiration>\
         </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
}

pub(super) async fn serve(listener: TcpListener, key: &Value) -> anyhow::Result<()> {
    let answers = Arc::new(Answers::new(key));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answers = Arc::clone(&answers);
        let service = service_fn(move |request: Request<Incoming>| {
            let answers = Arc::clone(&answers);
            async move {
                let path = request.uri().path().to_owned();
                let asked = request.collect().await.map(Collected::to_bytes).unwrap_or_default();
                let mut response = Response::new(Full::new(answers.to(&path, &asked)));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                Ok::<_, Infallible>(response)
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
