//! The one handshake with the server, which all its clients share.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use serde_json::json;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::{Id, Message, Param, Revision, json, method, translate};

use super::audience::Audience;
use super::caller::Caller;
use super::calls::{Calls, Unsent};
use super::events::{End, EventStream};
use super::outbox::Full;
use crate::eras::line::{Lost, NoSession};

/// What clients can do that no client of a shared server can be asked for: nobody knows whose call it is about.
const UNSHARED_CAPABILITIES: [&str; 4] = ["roots", "sampling", "elicitation", "tasks"];

/// What the server answered: its result, as JSON.
pub(super) type Agreed = Arc<str>;
/// Why there is no agreement.
pub(super) type Failure = Arc<Refusal>;
type Attempt = Shared<BoxFuture<'static, Result<Agreed, Failure>>>;

/// Why the server did not agree.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It said so: the error, as JSON.
    Error(Box<str>),
    /// It said nothing.
    Silence,
    /// It was not even asked.
    Full,
}

impl Refusal {
    /// The same, for somebody who wanted a session.
    pub(super) fn no_session(&self) -> NoSession {
        match self {
            Self::Error(error) => NoSession::Refused(error.to_string()),
            Self::Silence => NoSession::Lost(Lost::TimedOut),
            Self::Full => NoSession::Lost(Lost::Refused(Box::new(Full::answer()))),
        }
    }
}

/// Makes the handshake once, whoever asks first and however many ask.
#[derive(Debug)]
pub(super) struct Handshake {
    audience: Audience,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    attempt: Option<Attempt>,
    /// What the server was sent, for the next server in its place.
    request: Option<Message>,
}

impl Handshake {
    pub(super) fn new(audience: Audience) -> Self {
        Self { audience, state: Mutex::default() }
    }

    /// The agreement with the server. `offer` is the handshake of a client; without one it is our own.
    pub(super) async fn agree(&self, calls: &Arc<Calls>, offer: Option<&Message>) -> Result<Agreed, Failure> {
        let attempt = {
            let mut state = self.state.lock();
            if let Some(attempt) = state.attempt.clone() {
                attempt
            } else {
                let request = state.request.clone();
                let request =
                    request.unwrap_or_else(|| offer.and_then(|offer| passed(offer, self.audience)).unwrap_or_else(own));
                state.request = Some(request.clone());
                // In a task of its own, so that it goes on when the client that began it is gone.
                let task = tokio::spawn(ask(Arc::clone(calls), request, self.audience));
                let attempt = task.map(|joined| joined.unwrap_or_else(|_| Err(Refusal::Silence.into())));
                let attempt = attempt.boxed().shared();
                state.attempt = Some(attempt.clone());
                attempt
            }
        };
        let outcome = attempt.clone().await;
        if outcome.is_err() {
            let mut state = self.state.lock();
            // The next client may try again, with its own words.
            if state.attempt.as_ref().is_some_and(|current| current.ptr_eq(&attempt)) {
                *state = State::default();
            }
        }
        outcome
    }

    /// Whether the server has agreed.
    pub(super) fn is_agreed(&self) -> bool {
        let attempt = self.state.lock().attempt.clone();
        attempt.and_then(|attempt| attempt.peek().map(Result::is_ok)).unwrap_or_default()
    }

    /// Forgets the agreement with a server that is gone, and tells whether there was one.
    pub(super) fn forget(&self) -> bool {
        let mut state = self.state.lock();
        state.attempt = None;
        state.request.is_some()
    }
}

async fn ask(calls: Arc<Calls>, request: Message, audience: Audience) -> Result<Agreed, Failure> {
    let stream = EventStream::new(0, false);
    let ticket = calls.begin(&request, Caller::default(), &stream, true).await.map_err(|_| Refusal::Full)?;
    // A handshake is never called off.
    ticket.keep();
    let (end, answer) = stream.outcome().await;
    if !matches!(end, End::Answered | End::Refused(_)) {
        return Err(Refusal::Silence.into());
    }
    let answer = Message::read(answer).map_err(|_| Refusal::Silence)?;
    let Some(result) = answer.result() else {
        return Err(Refusal::Error(answer.error().unwrap_or_default().into()).into());
    };
    if let Some(revision) = translate::agreed(result) {
        calls.speak(revision);
    }
    let initialized = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, method::INITIALIZED);
    calls.insist(initialized.into()).map_err(|Full| Refusal::Full)?;
    Ok(promised(result, audience).into())
}

/// What a server promises its clients. Nobody knows whose the tasks of a server are that clients share.
fn promised(result: &str, audience: Audience) -> Cow<'_, str> {
    match audience {
        Audience::Everybody => without(result, &["capabilities", "tasks"]),
        Audience::OneSession => result.into(),
    }
}

/// JSON without a member, if it has it.
fn without<'a>(text: &'a str, path: &[&str]) -> Cow<'a, str> {
    json::remove(text, path).ok().flatten().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// A client's handshake as the server gets it. A server that clients share is asked for the newest revision, so that it
/// does not matter who comes first, and is promised nothing that cannot be shared.
fn passed(offer: &Message, audience: Audience) -> Option<Message> {
    let asked = offer.param_text(Param::ProtocolVersion)?;
    let wanted = match audience {
        Audience::Everybody => Revision::NEWEST_WITH_HANDSHAKE,
        Audience::OneSession => Revision::negotiate(&asked),
    };
    let mut text = offer.as_str().to_owned();
    if Revision::parse(&asked) != Some(wanted) {
        text = json::set(&text, &["params", "protocolVersion"], &json::quote(wanted.text())).ok()?;
    }
    let unshared = if audience == Audience::Everybody { &UNSHARED_CAPABILITIES[..] } else { &[] };
    for capability in unshared {
        text = without(&text, &["params", "capabilities", capability]).into_owned();
    }
    Message::read(text.into()).ok()
}

fn own() -> Message {
    let client = json!({"name": "skep", "version": env!("CARGO_PKG_VERSION")});
    let version = Revision::NEWEST_WITH_HANDSHAKE.text();
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    let text = json!({"jsonrpc": "2.0", "id": 0, "method": method::INITIALIZE, "params": params}).to_string();
    match Message::read(Bytes::from(text)) {
        Ok(message) => message,
        Err(error) => unreachable!("our own handshake is a message: {error}"),
    }
}

/// The answer to a client's handshake, and the revision that its session has: the client's own, if it is one that we know.
pub(super) fn answer(offer: &Message, agreed: &str) -> (String, Revision) {
    let told = translate::agreed(agreed).unwrap_or(Revision::NEWEST_WITH_HANDSHAKE);
    let asked = offer.param_text(Param::ProtocolVersion).unwrap_or_default();
    let known = Revision::parse(&asked).filter(|revision| !revision.is_stateless());
    // A client that asked by the unpublished name of a revision must find that name in the answer.
    let result = known.and_then(|_| json::set(agreed, &["protocolVersion"], &json::quote(&asked)).ok());
    let result = result.as_deref().unwrap_or(agreed);
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, offer.id().unwrap_or_default());
    (text, known.unwrap_or(told))
}

/// The answer to a handshake that the server did not agree to.
pub(super) fn refusal(id: Option<&Id>, refusal: &Refusal) -> String {
    match (refusal, id) {
        (Refusal::Error(error), Some(id)) => format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.as_json()),
        (Refusal::Full, _) => Unsent::Full.fault().answer(id),
        _ => Fault::new(INTERNAL_ERROR, "the MCP server does not answer the handshake").answer(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(version: &str) -> Message {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"sampling":{{}},"x":1}},"clientInfo":{{"name":"a"}}}}}}"#
        );
        Message::read(Bytes::from(text)).unwrap()
    }

    #[test]
    fn a_shared_server_is_asked_for_the_newest_revision_and_promised_nothing_that_cannot_be_shared() {
        let expected = offer("2025-11-25").as_str().replace("\"sampling\":{},", "");
        for asked in ["2024-10-07", "2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28", "1999-01-01"] {
            assert_eq!(passed(&offer(asked), Audience::Everybody).unwrap().as_str(), expected, "{asked}");
        }
        assert_eq!(own().method(), "initialize");
    }

    #[test]
    fn a_shared_server_promises_nothing_that_cannot_be_shared() {
        let result = r#"{"capabilities":{"tools":{},"tasks":{"list":{}}},"x":1}"#;
        assert_eq!(promised(result, Audience::Everybody), r#"{"capabilities":{"tools":{}},"x":1}"#);
        assert_eq!(promised(result, Audience::OneSession), result);
        assert_eq!(promised("{}", Audience::Everybody), "{}");
    }

    #[test]
    fn a_server_of_one_client_hears_that_client() {
        for (asked, told) in [("2025-03-26", "2025-03-26"), ("2024-10-07", "2024-10-07"), ("2026-07-28", "2025-11-25")]
        {
            let passed = passed(&offer(asked), Audience::OneSession).unwrap();
            assert_eq!(passed.as_str(), offer(told).as_str(), "{asked}");
        }
    }

    #[test]
    fn each_client_gets_the_revision_that_it_asked_for() {
        let agreed = r#"{"protocolVersion":"2025-11-25","serverInfo":{"name":"x"}}"#;
        let answer = |asked: &str| answer(&offer(asked), agreed);
        let (text, revision) = answer("2025-03-26");
        assert_eq!(revision, Revision::March2025);
        assert_eq!(
            text,
            r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-03-26","serverInfo":{"name":"x"}}}"#
        );
        assert_eq!(answer("2031-01-01").1, Revision::November2025);
        assert!(answer("2024-10-07").0.contains("2024-10-07"));
    }
}
