//! A server that is reached by streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use serde_json::json;
use skep_mcp::{Message, Param, Revision, header, method, translate};
use tokio::sync::RwLock;

use super::holder::Holder;
use super::line::{self, Line, Lost, Replies};
use super::reading::{Expected, Reading};
use super::surroundings::{Proven, Surroundings};
use super::verdict::Eras;
use crate::answer;
use crate::budget::Allowance;
use crate::middleware::aws_sts::Signer;
use crate::stdio::mirrors::Mirrors;
use crate::transparent::upstream::{FromServer, Outgoing, Upstream};

/// What is said in headers about the message, which is not the client's to say.
const OURS: [http::HeaderName; 10] = [
    header::PROTOCOL_VERSION,
    header::SESSION_ID,
    header::LAST_EVENT_ID,
    header::METHOD,
    header::NAME,
    ACCEPT,
    ACCEPT_ENCODING,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
];

/// How often it is looked whether a stream is free that only one may have, and how long is waited in between.
const FREE_ATTEMPTS: u32 = 20;
const FREE_PAUSE: Duration = Duration::from_millis(50);

/// A server, and as whom it is talked to.
#[derive(Debug, Clone)]
pub(crate) struct HttpLine {
    upstream: Upstream,
    uri: Uri,
    /// What the client says about itself, its credentials above all.
    headers: HeaderMap,
    /// Whose line it is.
    holder: Holder,
    /// Whoever signs what the client sends.
    signer: Option<Signer>,
    /// When the client's credentials end, if that is known.
    good_until: Option<Instant>,
    /// What the client has proved, if that was needed.
    proven: Option<Proven>,
    speaks: Speaks,
    /// What may be held of a message of the server.
    allowance: Allowance,
    /// Ids are ours, and no two requests have the same.
    next: Arc<AtomicU64>,
    /// Held by those who still have something to say before the session ends.
    last_words: Arc<RwLock<()>>,
}

/// How long a server may take to take a message that it need not answer, and to hear that a session has ended.
const TELLING: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(2);

/// Bytes of what a server says when it refuses a handshake.
const REFUSAL_BYTES: usize = 64 << 10;

/// By which rules the server is talked to.
#[derive(Debug, Clone)]
enum Speaks {
    /// Every request stands alone.
    Modern { mirrors: Arc<Mirrors>, eras: Arc<Eras> },
    /// Within a session, if the server gave one, and in its revision once that is known.
    Legacy { session: Option<HeaderValue>, revision: Option<Revision> },
}

impl HttpLine {
    /// A line to a server whose requests stand alone.
    pub(crate) fn modern(
        upstream: Upstream,
        uri: Uri,
        headers: HeaderMap,
        allowance: Allowance,
        mirrors: Arc<Mirrors>,
        eras: Arc<Eras>,
    ) -> Self {
        let speaks = Speaks::Modern { mirrors, eras };
        let (next, last_words) = (Arc::default(), Arc::default());
        let (holder, signer, good_until, proven) = (Holder::Anybody, None, None, None);
        let mut line =
            Self { upstream, uri, headers, holder, signer, good_until, proven, speaks, allowance, next, last_words };
        for name in OURS {
            line.headers.remove(name);
        }
        // They are made from the message, where it has to have them.
        Mirrors::strip(&mut line.headers);
        line
    }

    /// The same line to a server of sessions, before there is one.
    pub(crate) fn legacy(&self) -> Self {
        Self { speaks: Speaks::Legacy { session: None, revision: None }, ..self.clone() }
    }

    /// The same line within a session.
    pub(crate) fn within(&self, session: Option<HeaderValue>, revision: Revision) -> Self {
        Self { speaks: Speaks::Legacy { session, revision: Some(revision) }, ..self.clone() }
    }

    /// The same line to another address of the server.
    #[must_use]
    pub(crate) fn towards(mut self, uri: Uri) -> Self {
        self.uri = uri;
        self
    }

    /// The line of somebody, and who signs for them.
    #[must_use]
    pub(crate) fn of(mut self, holder: Holder, signer: Option<Signer>) -> Self {
        (self.holder, self.signer) = (holder, signer);
        self
    }

    /// The line of somebody who has proved something.
    #[must_use]
    pub(crate) fn proven(mut self, proven: Option<Proven>) -> Self {
        self.proven = proven;
        self
    }

    /// The same line, for a client that says this about itself now.
    pub(super) fn renewed(&self, headers: HeaderMap, signer: Option<Signer>) -> Self {
        Self { headers, signer, ..self.clone() }
    }

    /// The same session, talked to as its client says now: with the headers, the credentials and the address of another
    /// line of it.
    #[must_use]
    pub(super) fn said_as(&self, now: &Self) -> Self {
        let (next, last_words) = (Arc::clone(&self.next), Arc::clone(&self.last_words));
        Self { speaks: self.speaks.clone(), next, last_words, ..now.clone() }
    }

    /// The same line, whose credentials are good until then.
    #[must_use]
    pub(crate) fn good_until(mut self, end: Option<Instant>) -> Self {
        self.good_until = end;
        self
    }

    /// What may be held of a message of the server.
    pub(super) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// When its credentials end, if that is known.
    pub(super) fn end_of_credentials(&self) -> Option<Instant> {
        self.good_until
    }

    /// Whoever signs what the client sends.
    pub(super) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// What the client says about itself.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whose line it is.
    pub(crate) fn holder(&self) -> &Holder {
        &self.holder
    }

    /// What is said on it besides messages.
    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings::of(&self.headers, self.proven.as_ref(), self.signer.as_ref())
    }

    /// Sends a handshake. Gives the session that the server opened with its answer.
    pub(super) async fn shake_hands(&self, request: &Message) -> Result<(Option<HeaderValue>, Replies), Lost> {
        let response = self.post(request.text().clone(), Some(request)).await?;
        if is_no_endpoint(response.status()) {
            let refused = refused(response, request).await?;
            return Ok((None, futures::stream::once(std::future::ready(refused)).boxed()));
        }
        let session = response.headers().get(header::SESSION_ID).cloned();
        Ok((session, self.replies(response, request, None)))
    }

    /// Ends the session, if there is one. What the server says to that does not matter, nor whether it does in time.
    pub(super) async fn end(&self) {
        if let Speaks::Legacy { session: Some(_), .. } = self.speaks {
            // What is called off has to be called off within it.
            let said = tokio::time::timeout(FAREWELL, self.last_words.write()).await;
            let farewell = self.outgoing(Method::DELETE, Bytes::new(), None);
            let _ = tokio::time::timeout(FAREWELL, self.upstream.send_once(&farewell)).await;
            drop(said);
        }
    }

    /// Tells the server that nobody waits any more for the answer to the request of this number.
    pub(super) fn call_off(&self, number: u64) {
        // Closing the stream is enough where requests stand alone, and a session that is ending ends it, too.
        let words = self.has_sessions().then(|| Arc::clone(&self.last_words).try_read_owned().ok()).flatten();
        if let (Ok(runtime), Some(words)) = (tokio::runtime::Handle::try_current(), words) {
            let line = self.clone();
            let params = json!({"requestId": number, "reason": "nobody waits for it any more"});
            runtime.spawn(async move {
                line.tell(line::notification(method::CANCELLED, &params)).await;
                drop(words);
            });
        }
    }

    /// The stream from after an event on, or the one for what belongs to no request.
    pub(super) async fn get(&self, after: Option<&str>) -> Result<Response<FromServer>, Lost> {
        let mut outgoing = self.outgoing(Method::GET, Bytes::new(), None);
        outgoing.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(after) = after {
            let after = HeaderValue::from_str(after).map_err(|_| Lost::Unreached)?;
            outgoing.headers.insert(header::LAST_EVENT_ID, after);
        }
        for _ in 0..FREE_ATTEMPTS {
            let response = self.upstream.send_once(&outgoing).await.map_err(|_| Lost::Unreached)?;
            if response.status() == StatusCode::OK && super::reading::is_stream(response.headers()) {
                return Ok(response);
            }
            if response.status() != StatusCode::CONFLICT {
                return Err(Lost::Refused(Box::new(refusal(&response))));
            }
            // The server has not noticed yet that the one who had the stream before is gone.
            tokio::time::sleep(FREE_PAUSE).await;
        }
        Err(Lost::TimedOut)
    }

    /// What the server says that belongs to no request, or why it does not say it.
    pub(super) async fn listen(&self) -> Result<Replies, Lost> {
        let response = self.get(None).await?;
        Ok(Reading::new(self.clone(), response, Expected::Anything).replies())
    }

    fn outgoing(&self, method: Method, body: Bytes, message: Option<&Message>) -> Outgoing {
        let mut headers = self.headers.clone();
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        }
        let mut say = |name: http::HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        match &self.speaks {
            Speaks::Legacy { session, revision } => {
                // The revisions before do not know the header.
                if let Some(revision) = revision.filter(|revision| *revision >= Revision::June2025) {
                    say(header::PROTOCOL_VERSION, revision.text());
                }
                if let Some(session) = session {
                    headers.insert(header::SESSION_ID, session.clone());
                }
            }
            Speaks::Modern { mirrors, .. } => {
                say(header::PROTOCOL_VERSION, Revision::July2026.text());
                if let Some(message) = message {
                    say(header::METHOD, message.method());
                    let subject = method::subject(message.method()).and_then(|subject| message.param_text(subject));
                    if let Some(subject) = subject {
                        say(header::NAME, &header::encode(&subject));
                    }
                    headers.extend(mirrors.headers(message));
                }
            }
        }
        Outgoing { method, uri: self.uri.clone(), headers, body, signer: self.signer.clone() }
    }

    /// Sends a message, and gives a response that is one of the protocol.
    async fn post(&self, body: Bytes, message: Option<&Message>) -> Result<Response<FromServer>, Lost> {
        let outgoing = self.outgoing(Method::POST, body, message);
        let response = self.upstream.send(&outgoing).await.map_err(|_| Lost::Unreached)?;
        let status = response.status();
        let has_session = matches!(self.speaks, Speaks::Legacy { session: Some(_), .. });
        if has_session && status == StatusCode::NOT_FOUND {
            return Err(Lost::NoSession);
        }
        let is_told = status.is_success() || super::reading::is_json(response.headers());
        let is_challenge = matches!(status.as_u16(), 401 | 403 | 407);
        if is_challenge || super::line::is_away(status) || !is_told {
            return Err(Lost::Refused(Box::new(refusal(&response))));
        }
        Ok(response)
    }

    /// A request without what the server's revision has no word for, if it says such a thing.
    fn fitted(&self, request: &Message) -> Option<Message> {
        let Speaks::Legacy { revision: Some(revision), .. } = &self.speaks else { return None };
        Message::read(translate::request_for(request, *revision)?).ok()
    }

    fn replies(&self, response: Response<FromServer>, request: &Message, number: Option<u64>) -> Replies {
        Reading::new(self.clone(), response, Expected::new(request, number)).replies()
    }

    /// Whether a stream that breaks can be read on, and a request is called off by telling so.
    pub(super) fn has_sessions(&self) -> bool {
        matches!(self.speaks, Speaks::Legacy { .. })
    }
}

/// A request that was sent, while nothing of its answer is there.
struct Unanswered<'a> {
    line: &'a HttpLine,
    number: Option<u64>,
}

impl Unanswered<'_> {
    /// There is an answer, or there will be none.
    fn end(mut self) {
        self.number = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.line.call_off(number);
        }
    }
}

pub(crate) use super::reading::{is_json, is_stream};

/// Whether whoever answers so may have no endpoint for what was sent. If it does not say otherwise, it has none.
pub(crate) fn is_no_endpoint(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
}

/// The error with which a server refuses a request. Many that are no servers of the protocol refuse in JSON, too.
async fn refused(response: Response<FromServer>, request: &Message) -> Result<Message, Lost> {
    let told = refusal(&response);
    let body = Limited::new(response.into_body(), REFUSAL_BYTES).collect().await.map_err(|_| Lost::Unreached)?;
    let answer = Message::read(body.to_bytes()).ok();
    let error = answer.as_ref().and_then(Message::error).map(|error| line::error(request.id().unwrap_or("0"), error));
    error.and_then(|error| Message::read(error).ok()).ok_or_else(|| Lost::Refused(Box::new(told)))
}

/// What of a response that is none of the protocol matters to a client.
pub(super) fn refusal(response: &Response<FromServer>) -> answer::Answer {
    let mut told = answer::text(response.status(), "the MCP server refuses the request");
    for name in [WWW_AUTHENTICATE, RETRY_AFTER] {
        for value in response.headers().get_all(&name) {
            told.headers_mut().append(&name, value.clone());
        }
    }
    told
}

impl Line for HttpLine {
    fn ask<'a>(&'a self, request: &'a Message) -> BoxFuture<'a, Result<Replies, Lost>> {
        Box::pin(async {
            let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
            let fitted = self.fitted(request);
            let sent = fitted.as_ref().unwrap_or(request);
            let waiting = Unanswered { line: self, number: Some(number) };
            let response = self.post(sent.renumbered(number), Some(sent)).await;
            waiting.end();
            let replies = self.replies(response?, request, Some(number));
            let Speaks::Modern { mirrors, .. } = &self.speaks else { return Ok(replies) };
            Ok(if request.method() == method::TOOLS_LIST { mirrors.learning(replies) } else { replies })
        })
    }

    fn hear<'a>(&'a self, request: &'a Message) -> BoxFuture<'a, Result<Message, Lost>> {
        Box::pin(async {
            let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
            let response = self.post(request.renumbered(number), Some(request)).await?;
            let refusal = (!response.status().is_success()).then(|| refusal(&response));
            let reading = Reading::new(self.clone(), response, Expected::new(request, Some(number)));
            match (reading.answer().await, refusal) {
                // Many that are no servers of the protocol refuse in JSON, too.
                (Err(Lost::Unanswered(_)), Some(refusal)) => Err(Lost::Refused(Box::new(refusal))),
                (answered, _) => answered,
            }
        })
    }

    fn tell(&self, message: Bytes) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let told = tokio::time::timeout(TELLING, self.post(message, None)).await;
            told.is_ok_and(|told| told.is_ok())
        })
    }

    fn doubt(&self) {
        if let Speaks::Modern { eras, .. } = &self.speaks {
            eras.suspect();
        }
    }

    fn overhear(&self) -> BoxFuture<'_, Option<Replies>> {
        Box::pin(async { self.listen().await.ok() })
    }
}

impl Mirrors {
    /// The headers that a call has to have.
    pub(crate) fn headers(&self, message: &Message) -> HeaderMap {
        if message.method() != method::TOOLS_CALL {
            return HeaderMap::new();
        }
        let name = message.param_text(Param::Name).unwrap_or_default();
        let arguments = message.param(Param::Arguments).unwrap_or("{}");
        self.of(&name).iter().filter_map(|mirror| mirror.header_of(arguments)).collect()
    }
}

#[cfg(test)]
mod tests;
