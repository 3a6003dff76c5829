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
use http_body_util::BodyExt as _;
use skep_mcp::catalog::{CatalogKind, Item};
use skep_mcp::{Id, Kind, Message, Payload};

use super::exchange::{Exchange, messages};
use super::layer::{Next, refused};
use super::refusal::Refusal;
use crate::answer::{self, Answer};
use crate::body::Body;
use crate::budget::{self, Allowance};
use crate::passing::{self, MARK, Read, Unread};

/// So much space an answer of no type may begin with, in bytes. Nobody can tell what comes after it.
const MOST_SPACE: usize = 64 << 10;

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

/// Hands a request on whose body was read, and edits the lists of these kinds in its answer.
pub(crate) fn edited<'a, E: Editor>(
    mut exchange: Box<Exchange<'a>>,
    next: Next<'a>,
    kinds: &[CatalogKind],
    editor: impl FnOnce(&Exchange<'a>) -> Arc<E>,
) -> BoxFuture<'a, Answer> {
    if let Err(refusal) = exchange.judged() {
        return refused(refusal);
    }
    if !may_list(exchange.known(), &exchange.parts.method, kinds) {
        return next.pass(exchange);
    }
    // What is to be edited has to be readable.
    exchange.parts.headers.remove(ACCEPT_ENCODING);
    let (id, allowance) = (exchange.id(), exchange.limits().answers());
    let asked = Asked::read(exchange.known(), kinds);
    let editing = Editing { editor: editor(&exchange), id, asked, allowance };
    Box::pin(async move { editing.answer(next.pass(exchange).await).await })
}

/// What a client asks for. The results of lists have to hold them.
#[derive(Debug, Clone, Default)]
struct Asked {
    /// The lists, also those that are asked for without an id.
    lists: Vec<(Option<Id>, CatalogKind)>,
    /// The ids of everything else.
    others: Vec<Id>,
}

impl Asked {
    fn read(payload: Option<&Payload>, kinds: &[CatalogKind]) -> Self {
        let mut asked = Self::default();
        for message in payload.into_iter().flat_map(messages) {
            match listed(message, kinds) {
                Some(kind) => asked.lists.push((message.owned_id(), kind)),
                None if message.kind() == Kind::Request => asked.others.extend(message.owned_id()),
                None => {}
            }
        }
        asked
    }

    /// Whether a list was asked for.
    fn has_lists(&self) -> bool {
        !self.lists.is_empty()
    }

    /// The list that a result of this id has to hold.
    fn kind(&self, id: Option<&Id>) -> Option<CatalogKind> {
        let list =
            |wanted: Option<&Id>| self.lists.iter().find(|(asked, _)| asked.as_ref() == wanted).map(|(_, kind)| *kind);
        let is_of_another = || self.others.iter().any(|other| Some(other) == id);
        // What answers to nothing else may answer to a list that was asked for without an id.
        list(id).or_else(|| list(None).filter(|_| !is_of_another()))
    }
}

/// The list that a message asks for. Whether it wants an answer does not matter: some servers give one all the same.
fn listed(message: &Message, kinds: &[CatalogKind]) -> Option<CatalogKind> {
    CatalogKind::of(message.method()).filter(|kind| message.kind() != Kind::Response && kinds.contains(kind))
}

/// Whether the answer to a request may hold such a list. A stream that a client opens may bring anything.
fn may_list(payload: Option<&Payload>, method: &Method, kinds: &[CatalogKind]) -> bool {
    match payload {
        Some(payload) => *method != Method::POST || messages(payload).any(|message| listed(message, kinds).is_some()),
        None => *method != Method::HEAD,
    }
}

/// What is needed to edit one answer.
struct Editing {
    editor: Arc<dyn Editor>,
    /// The request, if it is known.
    id: Option<Id>,
    asked: Asked,
    /// So much of an answer is held at most.
    allowance: Allowance,
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
        let mut encodings = answer.headers().get_all(CONTENT_ENCODING).iter();
        if encodings.any(|encoding| encoding != "identity") {
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
        let text = match passing::hold(body, &self.allowance, |_| false).await {
            Ok(Read::Whole(text)) => text,
            Ok(Read::Begun(..)) | Err(Unread::Broken(..)) => return self.refuse(),
            Err(Unread::NoRoom) => return answer::no_room(self.id.as_ref()),
        };
        // What is said about a failure, or about an answer that comes elsewhere, need not be a message.
        let is_answer = parts.status.is_success() && parts.status != StatusCode::ACCEPTED;
        if !is_answer && message::holds_no_result(&text) {
            return Answer::from_parts(parts, Body::Full(text));
        }
        match message::edit(self.editor.as_ref(), &self.asked, &text).await {
            Ok(None) => Answer::from_parts(parts, Body::Full(text)),
            Ok(Some(edited)) => {
                parts.headers.remove(CONTENT_LENGTH);
                Answer::from_parts(parts, Body::Full(budget::made_of(&text, edited)))
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
        while first_letter(&begun).is_none() {
            if begun.len() > MOST_SPACE {
                tracing::warn!("an answer that may hold a list begins with too much space, and is not shown");
                return self.refuse();
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: &str = r#"{"jsonrpc":"2.0","method":"tools/list"}"#;

    fn payload(text: &str) -> Payload {
        Payload::read(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_list_that_is_asked_for_without_an_id_is_one_too() {
        let (kinds, batch) = ([CatalogKind::Tools], format!("[{QUIET}]"));
        for (text, expected) in [
            (QUIET, true),
            (batch.as_str(), true),
            (r#"{"jsonrpc":"2.0","method":"prompts/list"}"#, false),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, false),
        ] {
            assert_eq!(may_list(Some(&payload(text)), &Method::POST, &kinds), expected, "{text}");
        }
    }

    #[test]
    fn whatever_answers_to_nothing_else_has_to_hold_a_list_that_was_asked_for_without_an_id() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
        let listing = r#"{"jsonrpc":"2.0","id":2,"method":"prompts/list"}"#;
        let batch = payload(&format!("[{call},{listing},{QUIET}]"));
        let asked = Asked::read(Some(&batch), &[CatalogKind::Tools, CatalogKind::Prompts]);
        let kind = |id: u64| asked.kind(Some(&Id::from(id)));
        assert_eq!((kind(1), kind(2)), (None, Some(CatalogKind::Prompts)));
        assert_eq!((kind(3), asked.kind(None)), (Some(CatalogKind::Tools), Some(CatalogKind::Tools)));
        let loud = Asked::read(Some(&payload(listing)), &[CatalogKind::Prompts]);
        assert_eq!(loud.kind(Some(&Id::from(3))), None);
    }
}
