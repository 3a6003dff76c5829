//! A session belongs to whoever began it. To anybody else it is not there, even when they know its name.

use jsonwebtoken::Algorithm;
use redis::Commands as _;
use serde_json::{Value, json};
use skep_conformance::redis::RedisServer;
use skep_proxy::middleware::{Audit, Authentication, Chain, Middleware, Oidc, Step};
use skep_proxy::transparent::Dialect;
use skep_proxy::{Forwarded, Proxy, SessionStore};

use super::issuer::{Issuer, Key};
use crate::bridge::server::{Setup, limits};
use crate::http::{Request, Response, call, initialize, modern};
use crate::middleware::{Guarded, audit};
use crate::redis::{look, store};
use crate::transparent::dialled::{Streams, on_sse};
use crate::transparent::server::with_sessions;

/// An issuer, and what stands for its users.
pub(super) struct Users {
    issuer: Issuer,
    key: Key,
}

impl Users {
    pub(super) async fn new() -> Self {
        let key = Key::new("k", Algorithm::ES256);
        Self { issuer: Issuer::start(&[&key]).await, key }
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let oidc = Box::new(Oidc::new(&self.issuer.settings()).unwrap());
        vec![Step::Authenticate(Authentication::Oidc(oidc)), Step::StripCredentials]
    }

    fn middleware(&self) -> Middleware {
        Middleware::new(Chain::new(self.steps()))
    }

    /// A request as one of them sends it.
    pub(super) fn as_user(&self, user: &str, request: Request) -> Request {
        let mut claims = self.issuer.claims();
        claims["sub"] = json!(user);
        request.header("Authorization", &format!("Bearer {}", self.key.sign(&claims)))
    }
}

/// What can be done with the name of a session.
fn uses(session: &str) -> [Request; 4] {
    [
        Request::post(&call(7, "x")).in_session(session),
        Request::listen(session),
        Request::listen(session).header("Last-Event-ID", "0-0"),
        Request::new("DELETE", "/mcp").in_session(session),
    ]
}

async fn told(mut answer: Response) -> (u16, Value) {
    (answer.status, answer.json().await)
}

#[tokio::test]
async fn what_a_server_calls_a_session_is_of_no_use_to_others() {
    let users = Users::new().await;
    let guarded = Guarded::new(users.steps(), with_sessions("s")).await;
    let begun = guarded.send(users.as_user("ann", Request::post(&initialize("2025-11-25")))).await;
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    guarded.server.seen();
    for (stolen, unknown) in uses(&session).into_iter().zip(uses("nobody")) {
        let stolen = told(guarded.send(users.as_user("bob", stolen)).await).await;
        assert_eq!(stolen.0, 404);
        assert_eq!(stolen, told(guarded.send(users.as_user("bob", unknown)).await).await);
    }
    assert!(guarded.server.seen().is_empty());
    let mut answer = guarded.send(users.as_user("ann", Request::post(&call(1, "x")).in_session(&session))).await;
    assert_eq!(answer.json().await["result"]["session"], session);
}

#[tokio::test]
async fn a_session_of_the_bridge_is_of_no_use_to_others() {
    let users = Users::new().await;
    let middleware = users.middleware();
    let proxy = |bridge| Proxy::streamable(bridge).with_middleware(middleware);
    let mut setup = Setup::new(limits(), SessionStore::memory(), proxy).await;
    let mut server = setup.server().await;
    let offer = users.as_user("ann", Request::post(&initialize("2025-11-25")));
    let (begun, _) = tokio::join!(setup.send(offer), server.agree());
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    for (stolen, unknown) in uses(&session).into_iter().zip(uses("nobody")) {
        let stolen = told(setup.send(users.as_user("bob", stolen)).await).await;
        assert_eq!(stolen.0, 404);
        assert_eq!(stolen, told(setup.send(users.as_user("bob", unknown)).await).await);
    }
    let batch = json!([call(1, "x")]);
    let stolen = users.as_user("bob", Request::post(&batch).in_session(&session));
    assert_eq!(setup.send(stolen).await.status, 404);
    // What was not its own has not ended it, and its server has seen nothing of that.
    let own = users.as_user("ann", Request::post(&call(1, "own")).in_session(&session));
    let (answer, ()) = tokio::join!(setup.send(own), async {
        let message = server.expect("tools/call").await;
        assert_eq!(message["params"]["name"], "own");
        server.answer(&message, &json!({})).await;
    });
    assert_eq!(answer.status, 200);
    let end = users.as_user("ann", Request::new("DELETE", "/mcp").in_session(&session));
    assert_eq!(setup.send(end).await.status, 204);
}

#[tokio::test]
async fn whoever_names_a_session_of_another_is_recorded() {
    let (users, folder) = (Users::new().await, tempfile::tempdir().unwrap());
    let mut steps = users.steps();
    steps.insert(0, Step::Audit(Audit::new(audit::settings(&folder)).unwrap()));
    let guarded = Guarded::new(steps, with_sessions("s")).await;
    let begun = guarded.send(users.as_user("ann", Request::post(&initialize("2025-11-25")))).await;
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    drop(begun);
    let mut count = audit::records(&folder, 1).await.len();
    let recorded = async |count: &mut usize, request: Request| {
        let mut answer = guarded.send(users.as_user("bob", request)).await;
        answer.text().await;
        *count += 1;
        let record = audit::records(&folder, *count).await.pop().unwrap();
        assert_eq!(record["subjects"]["user_id"], "bob");
        let extra = &record["metadata"]["extra"]["session_of_another"];
        (answer.status, record["outcome"].as_str().unwrap().to_owned(), extra.clone())
    };
    for (stolen, unknown) in uses(&session).into_iter().zip(uses("nobody")) {
        assert_eq!(recorded(&mut count, stolen).await, (404, "denied".to_owned(), json!(true)));
        assert_eq!(recorded(&mut count, unknown).await, (404, "failure".to_owned(), Value::Null));
    }
    // Whoever begins anew gets nothing of the other session.
    let anew = Request::post(&initialize("2025-11-25")).in_session(&session);
    assert_eq!(recorded(&mut count, anew).await, (200, "success".to_owned(), Value::Null));
}

#[tokio::test]
async fn a_session_lives_no_longer_for_being_named_by_others() {
    let Some(redis) = RedisServer::start("a_session_lives_no_longer_for_being_named_by_others") else { return };
    let users = Users::new().await;
    let middleware = users.middleware();
    let proxy = |bridge| Proxy::streamable(bridge).with_middleware(middleware);
    let mut setup = Setup::new(limits(), store(&redis).await, proxy).await;
    let mut server = setup.server().await;
    let offer = users.as_user("ann", Request::post(&initialize("2025-11-25")));
    let (begun, _) = tokio::join!(setup.send(offer), server.agree());
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let (mut looking, key) = (look(&redis), format!("thv:proxy:session:{session}"));
    let _: () = looking.expire(&key, 60).unwrap();
    for stolen in uses(&session) {
        assert_eq!(setup.send(users.as_user("bob", stolen)).await.status, 404);
        assert!((1..=60).contains(&looking.ttl::<_, i64>(&key).unwrap()), "it was not used");
    }
    assert_eq!(setup.send(users.as_user("ann", Request::listen(&session))).await.status, 200);
    assert!(looking.ttl::<_, i64>(&key).unwrap() > 7000);
}

#[tokio::test]
async fn the_address_for_messages_is_of_no_use_to_others() {
    let users = Users::new().await;
    let middleware = users.middleware();
    let proxy = |bridge| Proxy::sse(bridge, Forwarded::default()).with_middleware(middleware);
    let mut setup = Setup::new(limits(), SessionStore::memory(), proxy).await;
    let mut server = setup.server().await;
    let open = Request::new("GET", "/sse").header("Accept", "text/event-stream");
    let mut stream = setup.send(users.as_user("ann", open)).await;
    let event = stream.event().await.unwrap();
    let path = &event[event.find("/messages").unwrap()..].trim_end();
    let post = |user: &str, path: &str| {
        let post = Request::new("POST", path).header("Content-Type", "application/json");
        users.as_user(user, post.body(initialize("2024-11-05").to_string()))
    };
    let stolen = told(setup.send(post("bob", path)).await).await;
    assert_eq!(stolen.0, 404);
    assert_eq!(stolen, told(setup.send(post("bob", "/messages?session_id=nobody")).await).await);
    let (accepted, _) = tokio::join!(setup.send(post("ann", path)), server.agree());
    assert_eq!(accepted.status, 202);
    assert!(stream.message().await.is_some());
}

#[tokio::test]
async fn a_session_that_is_opened_for_a_client_shows_what_the_client_shows_now() {
    let users = Users::new().await;
    let streams = Streams::default();
    // A server of ours gets the tokens of callers as they are.
    let steps = users.steps().into_iter().take(1).collect();
    let guarded = Guarded::of(Dialect::Sse, steps, on_sse(&streams)).await;
    let ask = async || {
        let call = users.as_user("ann", modern("x", "tools/call", json!({"name": "t"})));
        guarded.send(call).await.json().await["result"].clone()
    };
    let (first, second) = (ask().await, ask().await);
    assert_eq!(first["session"], second["session"]);
    assert_ne!(first["as"], second["as"], "each request had a token of its own");
}
