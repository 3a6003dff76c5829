//! Every revision, method, form and role, on every way to a server: the decision is the same in all of them. Roles come from
//! tokens.

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use skep_proxy::middleware::{Authentication, Oidc, Step};

use super::authorizer;
use super::caller::May::{Everybody, Keepers, Nobody};
use super::caller::{Caller, Form, MODERN, Row, Then};
use super::way::ways;
use crate::middleware::auth::issuer::{Issuer, Key};

/// What all revisions have, or none.
const METHODS: [Row; 21] = [
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
    ("tasks/update", r#"{"taskId":"1","inputResponses":{"sure":{"action":"accept"}}}"#, Nobody),
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

/// What only the revision without sessions has.
const METHODS_ALONE: [Row; 4] = [
    ("server/discover", "{}", Everybody),
    ("subscriptions/listen", r#"{"notifications":{}}"#, Everybody),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["hive://1"]}}"#, Keepers),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["hive://1","hive://2"]}}"#, Nobody),
];

/// What clients say without wanting an answer.
const NOTIFICATIONS: [Row; 15] = [
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
    // Only servers of the revision without sessions say these.
    ("notifications/tasks", r#"{"taskId":"1","status":"completed"}"#, Nobody),
    ("notifications/subscriptions/acknowledged", r#"{"notifications":{}}"#, Nobody),
    ("notifications/novel", "{}", Nobody),
    ("tools/call", r#"{"name":"burn","arguments":{}}"#, Nobody),
    ("resources/read", r#"{"uri":"hive://2"}"#, Nobody),
];

/// Calls that say more than what is called with what: as a task, and as the answer to what a server wanted to know.
const CALLS: [Row; 6] = [
    ("tools/call", r#"{"name":"weigh","arguments":{},"task":{"ttl":1}}"#, Keepers),
    ("tools/call", r#"{"name":"burn","arguments":{},"task":{"ttl":1}}"#, Nobody),
    (
        "tools/call",
        r#"{"name":"weigh","inputResponses":{"sure":{"action":"accept"}},"requestState":"made-up"}"#,
        Keepers,
    ),
    ("tools/call", r#"{"name":"burn","inputResponses":{"sure":{"action":"accept"}},"requestState":"made-up"}"#, Nobody),
    ("prompts/get", r#"{"name":"curse","inputResponses":{},"requestState":""}"#, Nobody),
    ("resources/read", r#"{"uri":"hive://2","inputResponses":{"sure":{"action":"accept"}}}"#, Nobody),
];

/// The same in batches, which only one revision has: whoever takes them decides about each message.
const BATCHED: [Row; 4] = [
    ("tools/call", r#"{"name":"weigh","arguments":{}}"#, Keepers),
    ("tools/call", r#"{"name":"burn","arguments":{}}"#, Nobody),
    ("tasks/result", r#"{"taskId":"1"}"#, Nobody),
    ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":["hive://2"]}}"#, Nobody),
];

/// What is wrong with how everything was decided that somebody can say.
async fn check(mut caller: Caller<'_>, is_modern: bool) -> Vec<String> {
    let (own, other) = if is_modern {
        (&METHODS_ALONE[..], &METHODS_OF_SESSIONS[..])
    } else {
        (&METHODS_OF_SESSIONS[..], &METHODS_ALONE[..])
    };
    let mut wrong = Vec::new();
    for row in METHODS.iter().chain(own) {
        wrong.extend(caller.check(*row, Form::Request, Then::Answered).await);
    }
    for row in other.iter().chain(&CALLS) {
        wrong.extend(caller.check(*row, Form::Request, Then::Decided).await);
    }
    for row in &NOTIFICATIONS {
        wrong.extend(caller.check(*row, Form::Notification, Then::Answered).await);
    }
    for (row, form) in BATCHED.iter().flat_map(|row| [(row, Form::Batch), (row, Form::QuietBatch)]) {
        wrong.extend(caller.check(*row, form, Then::Decided).await);
    }
    wrong.extend(caller.end().await);
    wrong
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
    let ways = ways(steps).await;
    let mut wrong = Vec::new();
    for (way, revisions) in &ways {
        for (revision, (groups, token)) in
            revisions.iter().flat_map(|revision| roles.iter().map(move |role| (revision, role)))
        {
            let caller = Caller::begin(way, revision, (groups, token)).await;
            wrong.extend(check(caller, *revision == MODERN).await);
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
