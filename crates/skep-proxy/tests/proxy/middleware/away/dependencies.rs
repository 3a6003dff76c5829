//! All whom steps depend on, each with the steps before a server, and what clients are told when something is wrong.

use std::sync::Arc;

use jsonwebtoken::Algorithm;
use serde_json::json;
use skep_proxy::middleware::{
    Authentication, Authorizer, AwsSts, AwsStsSettings, ClaimMapping, FailurePolicy, Oidc, OidcSettings, OnBehalfOf,
    OnBehalfOfSettings, PdpSettings, Power, Step, Telemetry, TokenExchange, TokenExchangeSettings,
};

use super::super::auth::check_refused;
use super::super::auth::issuer::{self, AUDIENCE, Issuer, Key, now};
use super::super::{aws_sts, token_exchange};
use crate::http::Response;
use crate::transparent::server::{Answer, Reply, Seen, reply};
use crate::{telemetry, webhook};

/// What a client is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    /// 401 with a challenge in these words.
    Challenge(&'static str),
    /// Words without a challenge.
    Text(u16, &'static str),
    /// The status, and the code and words of an error of JSON-RPC.
    Error(u16, i64, &'static str),
    /// What it has asked for.
    Result,
}

impl Told {
    /// Checks an answer to the request `seven`, word for word.
    pub(super) async fn check(self, row: &str, mut answer: Response, address: &str) {
        let (status, kind, body) = match self {
            Self::Challenge(told) => return check_refused(row, answer, &format!("http://{address}"), told).await,
            Self::Text(status, told) => (status, "text/plain; charset=utf-8", format!("{told}\n")),
            Self::Error(status, code, told) => {
                let error = format!(r#""error":{{"code":{code},"message":"{told}"}}"#);
                (status, "application/json", format!(r#"{{"jsonrpc":"2.0","id":"seven",{error}}}"#))
            }
            Self::Result => {
                let result = json!({"jsonrpc": "2.0", "id": "seven", "result": {"called": "feed"}});
                (200, "application/json", result.to_string())
            }
        };
        let said = answer.text().await;
        assert_eq!((answer.status, said.as_str()), (status, body.as_str()), "{row}");
        assert_eq!((answer.header("content-type"), answer.header("www-authenticate")), (Some(kind), None), "{row}");
    }
}

/// Steps, and a token that passes them.
type Guards = (Vec<Step>, String);

/// Somebody whom steps depend on.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// What it says when nothing is wrong.
    pub(super) healthy: Answer,
    /// What stands before a server when this is its address.
    pub(super) chain: Box<dyn Fn(&str) -> Guards>,
    pub(super) told: Told,
    /// Whether it is told of requests, and nobody waits for it.
    pub(super) is_told_later: bool,
}

impl Row {
    fn new(
        name: &'static str,
        healthy: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        chain: impl Fn(&str) -> Guards + 'static,
        told: Told,
    ) -> Self {
        Self { name, healthy: Arc::new(healthy), chain: Box::new(chain), told, is_told_later: false }
    }
}

fn giving(said: &serde_json::Value) -> impl Fn(&Seen) -> Reply + Send + Sync + 'static {
    let said = said.to_string();
    move |_| reply(200, &[("content-type", "application/json")], said.clone())
}

/// Everybody may call, with whatever they show.
fn behind_anybody(step: Step) -> Guards {
    (vec![Step::Authenticate(Authentication::Anonymous), Step::Parse, step], "ours".to_owned())
}

/// Callers prove who they are to the issuer at an address.
fn proving(settings: &OidcSettings) -> Vec<Step> {
    vec![Step::Authenticate(Authentication::Oidc(Box::new(Oidc::new(settings).unwrap()))), Step::Parse]
}

pub(super) async fn rows() -> Vec<Row> {
    let key = Key::new("k", Algorithm::ES256);
    let mut rows = of_callers(&key);
    rows.extend(of_decisions());
    rows.extend(of_credentials(&key).await);
    let collector = Row::new(
        "a collector",
        |_: &Seen| reply(200, &[("content-type", "application/x-protobuf")], ""),
        |address| {
            let telemetry = Telemetry::new(telemetry::faults::eager(address)).unwrap();
            behind_anybody(Step::Telemetry(telemetry))
        },
        Told::Result,
    );
    rows.push(Row { is_told_later: true, ..collector });
    rows
}

/// Those who know who calls. Google and GitHub have addresses that only tests beside the code can lead elsewhere.
fn of_callers(key: &Key) -> Vec<Row> {
    let signed = |key: &Key, address: &str| key.sign(&issuer::claims(&format!("http://{address}")));
    let (discovered, known) = (key.clone(), key.clone());
    let active = json!({"active": true, "aud": AUDIENCE, "sub": "ann", "exp": now() + 600});
    vec![
        Row::new(
            "discovery",
            issuer::publishing(&[key]),
            move |address| {
                let settings = issuer::settings(&format!("http://{address}"));
                (proving(&settings), signed(&discovered, address))
            },
            Told::Challenge("OIDC discovery failed"),
        ),
        Row::new(
            "a key set",
            issuer::publishing(&[key]),
            move |address| {
                let settings = issuer::settings(&format!("http://{address}"));
                let settings = OidcSettings { key_set_url: format!("http://{address}/keys"), ..settings };
                (proving(&settings), signed(&known, address))
            },
            Told::Challenge("failed to fetch JWKS"),
        ),
        Row::new(
            "introspection",
            move |seen: &Seen| {
                let mut said = active.clone();
                said["iss"] = json!(format!("http://{}", seen.header("host").unwrap()));
                giving(&said)(seen)
            },
            |address| {
                let settings = issuer::settings(&format!("http://{address}"));
                let settings = OidcSettings { introspection_url: format!("http://{address}/"), ..settings };
                (proving(&settings), "opaque".to_owned())
            },
            Told::Challenge("failed to introspect opaque token"),
        ),
    ]
}

/// Somebody who is asked for every call and for all that lists show.
pub(super) fn decision_point() -> Row {
    Row::new(
        "a decision point",
        giving(&json!({"allow": true})),
        |address| {
            behind_anybody(Step::Authorize(
                Authorizer::pdp(PdpSettings {
                    url: format!("http://{address}"),
                    timeout: None,
                    is_unverified: false,
                    tells_arguments: false,
                    tells_operation: false,
                    claims: ClaimMapping::Standard,
                    server: "hive".to_owned(),
                })
                .unwrap(),
            ))
        },
        Told::Error(403, 403, "Unauthorized"),
    )
}

/// Those who say whether somebody may.
fn of_decisions() -> Vec<Row> {
    let callback = |(name, power, policy, told)| {
        let chain = move |address: &str| behind_anybody(webhook::step(power, vec![webhook::settings(address, policy)]));
        Row::new(name, giving(&json!({"allowed": true})), chain, told)
    };
    let callbacks = [
        (
            "a callback that may change, or else nothing passes",
            Power::Change,
            FailurePolicy::Fail,
            Told::Error(500, -32603, "Webhook error"),
        ),
        ("a callback that may change", Power::Change, FailurePolicy::Ignore, Told::Result),
        (
            "a callback that may refuse, or else nothing passes",
            Power::Refuse,
            FailurePolicy::Fail,
            Told::Error(403, 403, "Request denied by policy"),
        ),
        ("a callback that may refuse", Power::Refuse, FailurePolicy::Ignore, Told::Result),
    ];
    std::iter::once(decision_point()).chain(callbacks.map(callback)).collect()
}

/// Those who give credentials for a server.
async fn of_credentials(key: &Key) -> Vec<Row> {
    let (issuer, key) = (Issuer::start(&[key]).await, key.clone());
    vec![
        Row::new(
            "token exchange",
            token_exchange::issuing,
            |address| {
                let token_url = format!("http://{address}/token");
                let settings = TokenExchangeSettings { token_url, ..TokenExchangeSettings::default() };
                behind_anybody(Step::ExchangeToken(TokenExchange::new(settings).unwrap()))
            },
            Told::Text(401, "Token exchange failed"),
        ),
        Row::new(
            "an endpoint for those who act on behalf of others",
            token_exchange::issuing,
            |address| {
                let settings = OnBehalfOfSettings {
                    token_url: format!("http://{address}/token"),
                    client_id: "proxy".to_owned(),
                    client_secret: "secret".to_owned(),
                    ..OnBehalfOfSettings::default()
                };
                behind_anybody(Step::ActOnBehalf(OnBehalfOf::new(&settings).unwrap()))
            },
            Told::Text(401, "Token exchange failed"),
        ),
        Row::new(
            "STS",
            aws_sts::giving,
            move |address| {
                let settings = AwsStsSettings {
                    fallback_role: aws_sts::arn("any"),
                    // Finding out which fits takes time of its own.
                    role_mappings: Vec::new(),
                    ..aws_sts::settings(address)
                };
                let mut steps = proving(&issuer.settings());
                steps.push(Step::SignForAws(AwsSts::new(settings).unwrap()));
                (steps, key.sign(&issuer.claims()))
            },
            Told::Text(401, "AWS credential exchange failed"),
        ),
    ]
}
