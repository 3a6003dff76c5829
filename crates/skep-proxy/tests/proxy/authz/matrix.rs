//! Every revision, method and role, on every way to a server: the decision is the same in all of them. Roles come from
//! tokens.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use skep_proxy::middleware::{Authentication, Oidc, Step};

use super::authorizer;
use super::way::{Era, Way};
use crate::http::{Request, Response, initialize, modern, request};
use crate::middleware::auth::issuer::{Issuer, Key};

const MODERN: &str = "2026-07-28";
const OF_SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[derive(Debug, Clone, Copy, PartialEq)]
enum May {
    Everybody,
    Keepers,
    Nobody,
}
use May::{Everybody, Keepers, Nobody};

/// A method, what it is given, and who may.
type Row = (&'static str, &'static str, May);

/// What all revisions have, or none.
const METHODS: [Row; 20] = [
    ("tools/call", r#"{"name":"weigh","arguments":{}}"#, Keepers),
    ("tools/call", r#"{"name":"burn","arguments":{}}"#, Nobody),
    ("tools/call", r#"{"name":"nowhere","arguments":{}}"#, Nobody),
    ("prompts/get", r#"{"name":"greet"}"#, Keepers),
    ("prompts/get", r#"{"name":"curse"}"#, Nobody),
    // A tool and a prompt of one name are two things.
    ("prompts/get", r#"{"name":"weigh"}"#, Nobody),
    ("resources/read", r#"{"uri":"hive://1"}"#, Keepers),
    ("resources/read", r#"{"uri":"hive://2"}"#, Nobody),
    ("tools/list", "{}", Everybody),
    ("prompts/list", "{}", Everybody),
    ("resources/list", "{}", Everybody),
    ("resources/templates/list", "{}", Everybody),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"curse"},"argument":{"name":"a","value":"b"}}"#,
        Everybody,
    ),
    ("sampling/createMessage", "{}", Nobody),
    ("elicitation/create", "{}", Nobody),
    ("tasks/get", r#"{"taskId":"1"}"#, Nobody),
    ("tasks/result", r#"{"taskId":"1"}"#, Nobody),
    ("tasks/cancel", r#"{"taskId":"1"}"#, Nobody),
    ("tasks/list", "{}", Nobody),
    ("novel/thing", r#"{"name":"weigh"}"#, Nobody),
];

/// What only revisions with sessions have.
const METHODS_OF_SESSIONS: [Row; 8] = [
    ("resources/subscribe", r#"{"uri":"hive://1"}"#, Keepers),
    ("resources/subscribe", r#"{"uri":"hive://2"}"#, Nobody),
    ("resources/unsubscribe", r#"{"uri":"hive://1"}"#, Keepers),
    ("resources/unsubscribe", r#"{"uri":"hive://2"}"#, Nobody),
    ("ping", "{}", Everybody),
    ("logging/setLevel", r#"{"level":"info"}"#, Everybody),
    ("roots/list", "{}", Everybody),
    ("features/list", "{}", Everybody),
];

/// What clients say without wanting an answer.
const NOTIFICATIONS: [Row; 12] = [
    ("notifications/initialized", "{}", Everybody),
    ("notifications/cancelled", r#"{"requestId":99}"#, Everybody),
    ("notifications/progress", r#"{"progressToken":99,"progress":1}"#, Everybody),
    ("notifications/roots/list_changed", "{}", Everybody),
    ("notifications/tools/list_changed", "{}", Everybody),
    ("notifications/prompts/list_changed", "{}", Everybody),
    ("notifications/resources/list_changed", "{}", Everybody),
    ("notifications/resources/updated", r#"{"uri":"hive://2"}"#, Everybody),
    ("notifications/message", r#"{"level":"info","data":1}"#, Everybody),
    ("notifications/tasks/status", r#"{"taskId":"1"}"#, Everybody),
    ("notifications/novel", "{}", Nobody),
    ("tools/call", r#"{"name":"burn","arguments":{}}"#, Nobody),
];

/// What only the revision without sessions has.
const METHODS_ALONE: [Row; 4] = [
    ("server/discover", "{}", Everybody),
    ("subscriptions/listen", r#"{"notifications":{}}"#, Everybody),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["hive://1"]}}"#, Keepers),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["hive://1","hive://2"]}}"#, Nobody),
];

/// What nobody but the server can answer, whatever it speaks.
const OF_THE_SERVER: [&str; 8] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "completion/complete",
];

/// Somebody who calls, in one revision.
struct Caller<'a> {
    way: &'a Way,
    revision: &'static str,
    groups: &'a str,
    token: &'a str,
    session: Option<String>,
}

impl<'a> Caller<'a> {
    async fn begin(way: &'a Way, revision: &'static str, (groups, token): (&'a str, &'a str)) -> Self {
        let mut caller = Self { way, revision, groups, token, session: None };
        if revision != MODERN {
            let answer = caller.send(Request::post(&initialize(revision)).plain()).await;
            // Whoever answers it, everybody may say it.
            assert_eq!(answer.status, 200, "{} {revision} initialize by {groups}", way.name);
            caller.session = answer.header("mcp-session-id").map(str::to_owned);
            way.seen();
        }
        caller
    }

    async fn send(&self, request: Request) -> Response {
        request.header("Authorization", &format!("Bearer {}", self.token)).send(&self.way.address).await
    }

    fn ask(&self, method: &str, params: &Value) -> Request {
        if self.revision == MODERN {
            let asked = modern(7, method, params.clone());
            // Whoever listens has to take events.
            let asked = if method == "subscriptions/listen" { asked } else { asked.plain() };
            // What the header repeats is not always the name.
            return match params["uri"].as_str().or(params["taskId"].as_str()) {
                Some(subject) => asked.instead("Mcp-Name", subject),
                None => asked,
            };
        }
        self.say(&request(7, method, params))
    }

    /// A message of a session.
    fn say(&self, message: &Value) -> Request {
        let request = Request::post(message).plain().header("MCP-Protocol-Version", self.revision);
        self.session.iter().fold(request, |request, session| request.in_session(session))
    }

    /// What is wrong with how a request was decided.
    async fn check(&self, (method, params, may): Row) -> Option<String> {
        let asked = self.ask(method, &serde_json::from_str(params).unwrap());
        self.judge((method, params, may), asked, (200, r#""id":7,"#)).await
    }

    /// The same for what wants no answer.
    async fn check_notification(&self, (method, params, may): Row) -> Option<String> {
        let message =
            json!({"jsonrpc": "2.0", "method": method, "params": serde_json::from_str::<Value>(params).unwrap()});
        self.judge((method, params, may), self.say(&message), (202, "")).await
    }

    async fn judge(&self, (method, params, may): Row, request: Request, (good, id): (u16, &str)) -> Option<String> {
        let row = format!("{} {} {method} {params} by {}", self.way.name, self.revision, self.groups);
        let mut answer = self.send(request).await;
        let is_allowed = may == Everybody || (may == Keepers && self.groups == "keepers");
        if is_allowed && answer.status == good {
            let must_arrive = self.way.passes_everything() || (OF_THE_SERVER.contains(&method) && good == 200);
            let has_arrived = self.way.seen().iter().any(|seen| seen["method"] == method);
            return (must_arrive && !has_arrived).then(|| format!("{row}: it did not arrive"));
        }
        let text = answer.text().await;
        let refusal = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":403,"message":"Unauthorized"}}}}"#);
        let is_refused = answer.status == 403 && text == refusal;
        let has_arrived = self.way.seen().iter().any(|seen| seen["method"] == method);
        (is_allowed || !is_refused || has_arrived).then(|| {
            format!("{row}: {} {text}, and it has {}arrived", answer.status, if has_arrived { "" } else { "not " })
        })
    }
}

#[tokio::test]
async fn the_decision_is_the_same_in_every_revision_and_on_every_way() {
    let key = Key::new("k", Algorithm::ES256);
    let issuer = Issuer::start(&[&key]).await;
    let token = |groups: Value| {
        let mut claims = issuer.claims();
        claims["groups"] = groups;
        key.sign(&claims)
    };
    let roles =
        [("keepers", token(json!(["keepers"]))), ("guests", token(json!(["guests"]))), ("nobody", token(json!(null)))];
    let steps = || {
        let oidc = Box::new(Oidc::new(&issuer.settings()).unwrap());
        vec![Step::Authenticate(Authentication::Oidc(oidc)), Step::Parse, Step::Authorize(authorizer(&[]))]
    };
    let all: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
    let ways = [
        (Way::transparent("any server", Era::Both, steps()).await, all),
        (Way::transparent("a server of sessions", Era::Sessions, steps()).await, &[MODERN][..]),
        (Way::transparent("a server without sessions", Era::Alone, steps()).await, &OF_SESSIONS[..]),
        (Way::lines("a process of sessions", Era::Sessions, steps()).await, all),
        (Way::lines("a process without sessions", Era::Alone, steps()).await, all),
    ];
    let mut wrong = Vec::new();
    for (way, revisions) in &ways {
        for (revision, (groups, token)) in
            revisions.iter().flat_map(|revision| roles.iter().map(move |role| (revision, role)))
        {
            let caller = Caller::begin(way, revision, (groups, token)).await;
            let of_era = if *revision == MODERN { &METHODS_ALONE[..] } else { &METHODS_OF_SESSIONS };
            for row in METHODS.iter().chain(of_era) {
                wrong.extend(caller.check(*row).await);
            }
            for row in NOTIFICATIONS.iter().filter(|_| *revision != MODERN) {
                wrong.extend(caller.check_notification(*row).await);
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
