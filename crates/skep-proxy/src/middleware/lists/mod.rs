//! Lists on their way to a client: somebody decides what of them is shown. Everything around the items stays as it is.
//!
//! A list may come as JSON, as an event of a stream, within a batch, or under a type that is none of these. Whatever may
//! hold one and cannot be read for sure is not shown at all.

mod events;
mod message;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use skep_mcp::catalog::{CatalogKind, Item};
use skep_mcp::{Id, Kind, Payload};

use super::exchange::{Exchange, messages};
use super::layer::Next;
use super::refusal::Refusal;
use crate::answer::{self, Answer};
use crate::body::Body;
use crate::passing::MARK;

/// Decides what of a list is shown.
pub(crate) trait Editor: Send + Sync + 'static {
    /// The lists that it has something to say about.
    fn kinds(&self) -> &'static [CatalogKind];

    /// The items that are shown, as JSON.
    fn edit<'a>(
        &'a self,
        kind: CatalogKind,
        items: &'a [Item<'a>],
    ) -> BoxFuture<'a, Result<Vec<Cow<'a, str>>, Unreadable>>;
}

/// Something that may hold a list and cannot be read for sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Hands a request on, and edits the lists in its answer.
pub(crate) async fn edited(mut exchange: Box<Exchange<'_>>, next: Next<'_>, editor: Arc<dyn Editor>) -> Answer {
    if let Err(refusal) = exchange.judged().await {
        return refusal;
    }
    if !may_list(exchange.known(), &exchange.parts.method, editor.kinds()) {
        return next.pass(exchange).await;
    }
    // What is to be edited has to be readable.
    exchange.parts.headers.remove(ACCEPT_ENCODING);
    let (id, largest) = (exchange.id(), exchange.limits().line_bytes);
    let asked = Asked::read(exchange.known());
    let editing = Editing { editor, id, asked, largest };
    Box::pin(editing.answer(next.pass(exchange).await)).await
}

/// The requests that ask for lists, and for which. Their results have to hold them.
#[derive(Debug, Clone, Default)]
struct Asked(Vec<(Id, CatalogKind)>);

impl Asked {
    fn read(payload: Option<&Payload>) -> Self {
        let lists = payload.into_iter().flat_map(messages);
        let lists = lists.filter_map(|message| Some((message.owned_id()?, CatalogKind::of(message.method())?)));
        Self(lists.collect())
    }

    /// The list that was asked for with this id.
    fn kind(&self, id: Option<&Id>) -> Option<CatalogKind> {
        self.0.iter().find(|(asked, _)| Some(asked) == id).map(|(_, kind)| *kind)
    }
}

/// Whether the answer to a request may hold such a list. A stream that a client opens may bring anything.
fn may_list(payload: Option<&Payload>, method: &Method, kinds: &[CatalogKind]) -> bool {
    let lists = |message: &skep_mcp::Message| {
        message.kind() == Kind::Request
            && CatalogKind::of(message.method()).is_some_and(|listed| kinds.contains(&listed))
    };
    match payload {
        Some(payload) => *method != Method::POST || messages(payload).any(lists),
        None => *method != Method::HEAD,
    }
}

/// What is needed to edit one answer.
struct Editing {
    editor: Arc<dyn Editor>,
    /// The request, if it is known.
    id: Option<Id>,
    asked: Asked,
    /// So many bytes of an answer are held at most.
    largest: usize,
}

/// How an answer comes.
enum Form {
    Json,
    Events,
    /// It does not say.
    Unknown,
}

impl Form {
    fn of(headers: &HeaderMap) -> Self {
        let mut kinds = headers.get_all(CONTENT_TYPE).iter();
        let kind = kinds.next().filter(|_| kinds.next().is_none()).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if kind.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else {
            Self::Unknown
        }
    }
}

impl Editing {
    async fn answer(self, answer: Answer) -> Answer {
        let is_encoded = answer.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
        if is_encoded {
            return self.refuse();
        }
        match Form::of(answer.headers()) {
            Form::Json => self.json(answer).await,
            Form::Events => self.events(answer),
            Form::Unknown if answer.status().is_success() => self.guess(answer).await,
            Form::Unknown => answer,
        }
    }

    fn refuse(&self) -> Answer {
        Refusal::UnreadableList.answer(self.id.as_ref())
    }

    async fn json(self, answer: Answer) -> Answer {
        let (mut parts, body) = answer.into_parts();
        let Ok(body) = Limited::new(body, self.largest).collect().await else { return self.refuse() };
        let text = body.to_bytes();
        // What is said about a failure, or about an answer that comes elsewhere, need not be a message.
        let is_answer = parts.status.is_success() && parts.status != StatusCode::ACCEPTED;
        if !is_answer && message::holds_no_result(&text) {
            return Answer::from_parts(parts, Body::Full(text));
        }
        match message::edit(self.editor.as_ref(), &self.asked, &text).await {
            Ok(None) => Answer::from_parts(parts, Body::Full(text)),
            Ok(Some(edited)) => {
                parts.headers.remove(CONTENT_LENGTH);
                Answer::from_parts(parts, Body::Full(edited))
            }
            Err(unreadable) => {
                tracing::warn!("an answer that may hold a list cannot be read, and is not shown");
                let refusal = Refusal::UnreadableList.answer(unreadable.or(self.id).as_ref());
                // A failure stays the failure that it was.
                let status = if parts.status.is_success() { refusal.status() } else { parts.status };
                let (mut head, body) = refusal.into_parts();
                head.status = status;
                Answer::from_parts(head, body)
            }
        }
    }

    fn events(self, answer: Answer) -> Answer {
        let (mut parts, body) = answer.into_parts();
        parts.headers.remove(CONTENT_LENGTH);
        Answer::from_parts(parts, events::edit(self, body))
    }

    /// Goes by what an answer begins with.
    async fn guess(self, answer: Answer) -> Answer {
        let (parts, mut body) = answer.into_parts();
        let mut begun = Vec::new();
        while first_letter(&begun).is_none() && begun.len() <= self.largest {
            let Some(frame) = body.frame().await else {
                // It says nothing, and is not asked for more: as answers to messages do whose own answers come elsewhere.
                return Answer::from_parts(parts, Body::Full(begun.into()));
            };
            let Ok(frame) = frame else { return answer::broken_off(self.id.as_ref()) };
            begun.extend_from_slice(frame.data_ref().map(Bytes::as_ref).unwrap_or_default());
        }
        let is_json = matches!(first_letter(&begun), Some(b'{' | b'['));
        let answer = Answer::from_parts(parts, body.after(begun.into()));
        // Text that is no stream of events has no events that could be edited.
        if is_json { self.json(answer).await } else { self.events(answer) }
    }
}

/// The first byte of a text that is no space.
fn first_letter(text: &[u8]) -> Option<u8> {
    let text = String::from_utf8_lossy(text.strip_prefix(MARK).unwrap_or(text));
    text.trim_start().bytes().next()
}
