//! A policy decision point that is asked over HTTP, once for every call and for every item of a list.
//!
//! Nobody waits for it for every item of a list: after the first question that it does not answer at all it is asked nothing
//! more about that list, and there is an end to how long all questions about one list may take.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::FuturesOrdered;
use futures::{FutureExt as _, StreamExt as _};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use serde_json::{Map, Value, json};
use skep_mcp::json;
use tokio::time::Instant;

use super::Verdict;
use super::hints::Hints;
use super::question::{Feature, Question};
use crate::fetch::{FetchError, FetchPolicy, Fetcher, FilesError, TlsFiles, without_user};
use crate::lapses::Lapses;
use crate::middleware::ambiguity::read_once;

/// How long a decision may take, unless something else is said.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a decision.
const LARGEST_ANSWER: usize = 1 << 20;

const NO_DECISION: &str = "the policy decision point gives no decision";

/// Questions about one list that are under way at the same time.
const AT_ONCE: usize = 16;

/// The decision point does not answer, whatever it is asked.
#[derive(Debug)]
struct Away;

/// How claims become the principal of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimMapping {
    /// The names with the prefix `m`, such as `mroles`.
    Mpe,
    /// The common names.
    Standard,
}

/// What the HTTP authorizer is told.
#[derive(Debug, Clone)]
pub struct PdpSettings {
    /// Where the decision point is; `/decision` is added to it.
    pub url: String,
    /// How long a decision may take; 30 s when there is none.
    pub timeout: Option<Duration>,
    /// Whether any certificate is taken.
    pub is_unverified: bool,
    /// Whether the arguments of calls are told.
    pub tells_arguments: bool,
    /// Whether it is told what is done with what.
    pub tells_operation: bool,
    /// How claims are told.
    pub claims: ClaimMapping,
    /// The server that everything belongs to.
    pub server: String,
}

/// Why there is no HTTP authorizer.
#[derive(Debug, thiserror::Error)]
pub enum PdpError {
    /// The address is none.
    #[error("pdp.http.url {0:?} must be an address that begins with http:// or https://")]
    Url(String),
    /// It is where nobody may be asked.
    #[error("pdp.http.url: {0}")]
    Address(#[from] FetchError),
    /// TLS cannot be set up.
    #[error("pdp.http: {0}")]
    Tls(#[from] FilesError),
}

/// The authorizer.
#[derive(Debug)]
pub(super) struct Pdp {
    url: Uri,
    fetcher: Fetcher,
    /// How long all questions about one thing may take.
    patience: Duration,
    lapses: Lapses,
    tells_arguments: bool,
    tells_operation: bool,
    claims: ClaimMapping,
    server: String,
}

impl Pdp {
    pub(super) fn new(settings: PdpSettings) -> Result<Self, PdpError> {
        let url = format!("{}/decision", settings.url.trim_end_matches('/'));
        let url = url.parse::<Uri>().ok().filter(|url| matches!(url.scheme_str(), Some("http" | "https")));
        let url = url.ok_or_else(|| PdpError::Url(without_user(&settings.url).into_owned()))?;
        let patience = settings.timeout.unwrap_or(PATIENCE);
        let fetcher = Fetcher::new(FetchPolicy {
            // It is a service of the same cluster, or stands beside the proxy.
            allows_private: true,
            allows_http: url.scheme_str() == Some("http"),
            tls: TlsFiles { is_unverified: settings.is_unverified, ..TlsFiles::default() },
            head: patience,
            patience,
        })?;
        fetcher.check(&url)?;
        Ok(Self {
            url,
            fetcher,
            // Where a single answer has to come soon, a long list of them may still take a while.
            patience: patience.max(PATIENCE),
            lapses: Lapses::default(),
            tells_arguments: settings.tells_arguments,
            tells_operation: settings.tells_operation,
            claims: settings.claims,
            server: settings.server,
        })
    }

    /// Asks whether somebody with these claims may do these things, until nobody wants to hear more. Each of them has an
    /// answer, in their order, and whatever is no clear yes is a no.
    pub(super) async fn ask(
        &self,
        claims: &Map<String, Value>,
        questions: &[Question<'_>],
        hints: impl Fn(&Question<'_>) -> Hints + Send,
        mut hear: impl FnMut(Verdict) -> ControlFlow<()> + Send,
    ) {
        let until = Instant::now() + self.patience;
        let (mut waiting, mut heard) = (questions.iter(), 0);
        let mut asked = FuturesOrdered::new();
        for _ in questions {
            // Nobody is asked before there is room for it.
            while asked.len() < AT_ONCE
                && let Some(question) = waiting.next()
            {
                asked.push_back(self.allows(claims, question, hints(question)).boxed());
            }
            let Ok(Some(Ok(verdict))) = tokio::time::timeout_at(until, asked.next()).await else { break };
            heard += 1;
            if hear(verdict).is_break() {
                return;
            }
        }
        for _ in questions.iter().skip(heard) {
            if hear(Err(NO_DECISION.into())).is_break() {
                return;
            }
        }
    }

    async fn allows(
        &self,
        claims: &Map<String, Value>,
        question: &Question<'_>,
        hints: Hints,
    ) -> Result<Verdict, Away> {
        let Some(document) = self.document(claims, question, hints) else {
            return Ok(Err("its arguments can be read in two ways".into()));
        };
        let mut request = Request::new(Bytes::from(document));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        for name in [CONTENT_TYPE, ACCEPT] {
            request.headers_mut().insert(name, HeaderValue::from_static("application/json"));
        }
        match self.fetcher.send(request, LARGEST_ANSWER).await {
            Ok(answer) if answer.status() == StatusCode::OK => {
                if self.lapses.is_over() {
                    tracing::info!("the policy decision point gives decisions again");
                }
                Ok(if is_yes(answer.body()) { Ok(()) } else { Err("the policy decision point says no".into()) })
            }
            Ok(answer) => {
                self.fail(&format!("it answers {}", answer.status()));
                Ok(Err(NO_DECISION.into()))
            }
            Err(error) => {
                self.fail(&error.to_string());
                Err(Away)
            }
        }
    }

    fn fail(&self, error: &str) {
        if let Some(times) = self.lapses.failed() {
            tracing::warn!(error, times, "{NO_DECISION}");
        }
    }

    /// The question as it is sent. Nothing when somebody could read the arguments in another way than the decision point.
    fn document(&self, claims: &Map<String, Value>, question: &Question<'_>, hints: Hints) -> Option<String> {
        let (feature, operation) = (question.feature.name(), question.feature.operation());
        let mut about = Vec::new();
        if self.tells_operation {
            about.push(("feature", json::quote(feature)));
            about.push(("operation", json::quote(operation)));
            about.push(("resource_id", json::quote(&question.id)));
        }
        if self.tells_arguments && !question.arguments.is_empty() {
            about.push(("args", arguments(question)?));
        }
        let annotations: Map<String, Value> = match question.feature {
            Feature::Tool => hints.given().map(|(name, hint)| (name.to_owned(), json!(hint))).collect(),
            Feature::Prompt | Feature::Resource => Map::new(),
        };
        if !annotations.is_empty() {
            about.push(("annotations", Value::Object(annotations).to_string()));
        }
        let context = if about.is_empty() { Vec::new() } else { vec![("mcp", object(about))] };
        Some(object([
            ("principal", principal(self.claims, claims).to_string()),
            ("operation", json::quote(&format!("mcp:{feature}:{operation}"))),
            ("resource", json::quote(&format!("mrn:mcp:{}:{feature}:{}", self.server, question.id))),
            ("context", object(context)),
        ]))
    }
}

fn is_yes(answer: &[u8]) -> bool {
    read_once::<Value>(answer).is_some_and(|answer| answer.get("allow") == Some(&Value::Bool(true)))
}

/// The arguments as the server gets them, as long as no object in them has a member twice. What we would make of a
/// number might be another one.
fn arguments(question: &Question<'_>) -> Option<String> {
    let mut given = question.arguments.iter();
    let is_clear = given.all(|(_, json)| read_once::<Value>(json.as_bytes()).is_some());
    is_clear.then(|| object(question.arguments.iter().map(|(name, json)| (&**name, *json))))
}

/// An object with these members, whose values are JSON already.
fn object<N: AsRef<str>, V: AsRef<str>>(members: impl IntoIterator<Item = (N, V)>) -> String {
    let member = |(name, value): (N, V)| format!("{}:{}", json::quote(name.as_ref()), value.as_ref());
    format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
}

/// Claims under the names that the decision point knows. What the caller has not is not told.
fn principal(mapping: ClaimMapping, claims: &Map<String, Value>) -> Value {
    let names: &[(&str, &[&str])] = match mapping {
        ClaimMapping::Mpe => &[
            ("sub", &["sub"]),
            ("mroles", &["mroles", "roles"]),
            ("mgroups", &["mgroups", "groups"]),
            ("scopes", &["scopes", "scope"]),
            ("mclearance", &["mclearance", "clearance"]),
            ("mannotations", &["mannotations", "annotations"]),
        ],
        ClaimMapping::Standard => {
            &[("sub", &["sub"]), ("roles", &["roles"]), ("groups", &["groups"]), ("scopes", &["scopes", "scope"])]
        }
    };
    let told = names.iter().filter_map(|(name, sources)| {
        let claim = sources.iter().find_map(|source| claims.get(*source))?;
        Some(((*name).to_owned(), claim.clone()))
    });
    let mut principal: Map<String, Value> = told.collect();
    if mapping == ClaimMapping::Mpe {
        principal.entry("mannotations").or_insert_with(|| json!({}));
    }
    Value::Object(principal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pdp(tells_everything: bool, claims: ClaimMapping) -> Pdp {
        let settings = PdpSettings {
            url: "http://pdp.example/v1/".to_owned(),
            timeout: None,
            is_unverified: true,
            tells_arguments: tells_everything,
            tells_operation: tells_everything,
            claims,
            server: "s".to_owned(),
        };
        Pdp::new(settings).unwrap()
    }

    fn read(document: Option<String>) -> Value {
        serde_json::from_str(&document.unwrap()).unwrap()
    }

    #[test]
    fn a_bare_question_has_all_four_members() {
        let claims = json!({"sub": "u", "scope": "a b", "roles": ["r"], "name": "U"});
        let question = Question::about(Feature::Resource, "file:///a b");
        let bare = pdp(false, ClaimMapping::Standard);
        let asked = read(bare.document(claims.as_object().unwrap(), &question, Hints::default()));
        let expected = json!({
            "principal": {"sub": "u", "roles": ["r"], "scopes": "a b"},
            "operation": "mcp:resource:read",
            "resource": "mrn:mcp:s:resource:file:///a b",
            "context": {},
        });
        assert_eq!(asked, expected);
    }

    #[test]
    fn what_is_asked_for_is_told_and_arguments_of_two_meanings_are_not() {
        let whole = pdp(true, ClaimMapping::Mpe);
        let claims = json!({"sub": "u", "groups": ["g"]});
        let ask = |json: &'static str| {
            let question = Question { arguments: vec![("x".into(), json)], ..Question::about(Feature::Tool, "t") };
            whole.document(claims.as_object().unwrap(), &question, Hints::default())
        };
        let asked = read(ask(r#"{"a":[1]}"#));
        assert_eq!(asked["principal"], json!({"sub": "u", "mgroups": ["g"], "mannotations": {}}));
        let told = json!({"feature": "tool", "operation": "call", "resource_id": "t", "args": {"x": {"a": [1]}}});
        assert_eq!(asked["context"]["mcp"], told);
        assert_eq!(ask(r#"[{"a":1,"\u0061":2}]"#), None);
    }

    #[test]
    fn a_number_is_told_as_the_server_gets_it() {
        let whole = pdp(true, ClaimMapping::Standard);
        let numbers = "[12345678901234567890123, 0.1000000000000000055511151231257827, 1.0, 1E2]";
        let given = vec![("a".into(), numbers), ("b \"c\"".into(), "9007199254740993"), ("d".into(), r#""\u0065""#)];
        let question = Question { arguments: given, ..Question::about(Feature::Tool, "t") };
        let document = whole.document(&Map::new(), &question, Hints::default()).unwrap();
        let args = format!(r#""args":{{"a":{numbers},"b \"c\"":9007199254740993,"d":"\u0065"}}"#);
        assert!(document.contains(&args), "{document}");
        assert_eq!(read(Some(document))["context"]["mcp"]["args"]["d"], "e");
    }

    #[test]
    fn only_true_is_a_yes() {
        const TWICE: &[u8] = br#"{"allow":false,"allow":true}"#;
        assert!(is_yes(br#"{"allow":true,"reason":"x"}"#));
        for answer in [&b""[..], b"true", b"{}", br#"{"allow":"true"}"#, br#"{"allow":1}"#, br#"{"allow":true"#, TWICE]
        {
            assert!(!is_yes(answer), "{}", String::from_utf8_lossy(answer));
        }
    }
}
