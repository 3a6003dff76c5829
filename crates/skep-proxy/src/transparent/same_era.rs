//! Clients whose requests stand alone, before a server of the same era: what passes is looked at once on each way.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::lines::{Line, LineSplitter};
use skep_mcp::sse::{Event, Frame};
use skep_mcp::{Kind, Message, header, method};

use super::Transparent;
use super::look::Known;
use crate::answer::{self, Answer};
use crate::body::{Body, BodyError};
use crate::eras::alone::Alone;
use crate::eras::http::{is_json, is_stream};
use crate::eras::seal::{Broken, refusal};
use crate::passing::{self, Change, Held};

impl Transparent {
    /// Gives a request back what its server told its client to repeat, and keeps what its answer is looked at with.
    pub(super) async fn stand_alone(&self, parts: &Parts, request: Message, known: &mut Known) -> Result<(), Answer> {
        let states = self.bridging.seals.of(&self.sessions, parts, &request).await?;
        if let Some(opened) = states.opened(&request).map_err(|Broken| refusal(&request))? {
            known.body = opened.text().clone();
            let subject = method::subject(opened.method()).and_then(|subject| opened.param_text(subject));
            known.subject = subject.and_then(|subject| HeaderValue::from_str(&header::encode(&subject)).ok());
        }
        known.alone = Some(Alone { request, states, mirrors: Arc::clone(&self.bridging.mirrors) });
        Ok(())
    }
}

/// An answer as the client gets it. Not more of it is held than `largest`; what is larger passes as it is.
pub(super) async fn adapted(alone: Alone, answer: Answer, largest: usize) -> Result<Answer, Answer> {
    let headers = answer.headers();
    if headers.contains_key(CONTENT_ENCODING) {
        return Ok(answer);
    }
    if is_stream(headers) {
        let (mut head, body) = answer.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        return Ok(Response::from_parts(head, passing::changed(body, largest, alone)));
    }
    if !is_json(headers) {
        return Ok(answer);
    }
    let (mut head, body) = answer.into_parts();
    let mut form = Form::Unknown;
    let read = passing::hold(body, largest, |begun| form.is_several(begun)).await;
    Ok(match read.map_err(|_| answer::empty(http::StatusCode::BAD_GATEWAY))? {
        Held::Whole(text) => {
            let changed = Message::read(text.clone()).ok().and_then(|message| alone.message(&message));
            if changed.is_some() {
                head.headers.remove(CONTENT_LENGTH);
            }
            Response::from_parts(head, Body::Full(changed.unwrap_or(text)))
        }
        Held::Begun(begun, body) if form == Form::Several => answer::events(one_by_one(alone, &begun, body, largest)),
        Held::Begun(begun, body) => Response::from_parts(head, body.after(begun)),
    })
}

/// What is in a body that calls itself JSON, as far as its beginning tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unknown,
    One,
    /// Several messages, with line ends between them.
    Several,
}

impl Form {
    /// Whether a body that begins like this has several messages.
    fn is_several(&mut self, begun: &[u8]) -> bool {
        let first = begun.trim_ascii_start();
        if let Some(end) = memchr::memchr(b'\n', first).filter(|_| *self == Self::Unknown) {
            // What comes before an answer is followed by one. A text of several lines that is one message does not end with
            // the first of them.
            let first = Message::read(Bytes::copy_from_slice(&first[..end]));
            let is_several = first.is_ok_and(|message| message.kind() != Kind::Response);
            *self = if is_several { Self::Several } else { Self::One };
        }
        *self == Self::Several
    }
}

/// A body of lines while it is read.
struct Lines {
    alone: Alone,
    body: Body,
    splitter: Option<LineSplitter>,
}

/// Messages with line ends between them, as events.
fn one_by_one(alone: Alone, begun: &[u8], body: Body, largest: usize) -> Body {
    let mut splitter = LineSplitter::new(largest);
    splitter.buffer().extend_from_slice(begun);
    let start = Lines { alone, body, splitter: Some(splitter) };
    let events = futures::stream::unfold(start, async |mut lines| Some((lines.next().await?, lines)));
    Body::stream(events.filter(|events| std::future::ready(!matches!(events, Ok(events) if events.is_empty()))))
}

impl Lines {
    /// The events of the lines that are there.
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        let mut splitter = self.splitter.take()?;
        let mut events = Vec::new();
        while let Some(line) = splitter.next_line() {
            events.extend(self.event(line));
        }
        if events.is_empty() {
            match self.body.frame().await {
                Some(Ok(frame)) => splitter.buffer().extend_from_slice(&frame.into_data().unwrap_or_default()),
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    events.extend(splitter.finish().map(|line| self.event(line)).unwrap_or_default());
                    return Some(Ok(events.into()));
                }
            }
        }
        self.splitter = Some(splitter);
        Some(Ok(events.into()))
    }

    fn event(&self, line: Line) -> Vec<u8> {
        let data = match line {
            Line::Whole(line) => match Message::read(line) {
                Ok(message) => self.alone.message(&message).unwrap_or_else(|| message.text().clone()),
                Err(error) => {
                    tracing::debug!(%error, "the MCP server wrote a line that is no message");
                    return Vec::new();
                }
            },
            Line::TooLong => {
                let fault = Fault::new(INTERNAL_ERROR, "the answer of the MCP server is too large");
                fault.answer(self.alone.request.owned_id().as_ref()).into()
            }
        };
        Frame { name: Some("message"), data: &data, ..Default::default() }.encode()
    }
}

impl Change for Alone {
    async fn event(&mut self, event: Bytes) -> Bytes {
        let read = Event::read(&event);
        let data = read.data.as_deref().filter(|data| read.is_message() && !data.is_empty());
        let message = data.and_then(|data| Message::read(Bytes::copy_from_slice(data)).ok());
        match message.and_then(|message| self.message(&message)) {
            Some(data) => passing::with_data(&event, &data),
            None => event,
        }
    }
}
