//! Clients whose requests stand alone, before a server of the same era: what passes is looked at once on each way.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use skep_mcp::lines::{Line, LineSplitter};
use skep_mcp::sse::{Event, Frame};
use skep_mcp::{Kind, Message, header, method};

use super::Transparent;
use super::listening::{Again, Listening};
use super::look::Known;
use crate::answer::{self, Answer};
use crate::body::{Body, BodyError};
use crate::budget::{self, Allowance, Held};
use crate::eras::alone::Alone;
use crate::eras::http::{is_json, is_stream};
use crate::eras::json_body::{FirstLine, Found};
use crate::eras::seal::{Broken, refusal};
use crate::eras::unanswered::{Problem, Said};
use crate::passing::{self, After, Change, Read, Unread};

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

/// An answer as the client gets it. Not more of it is held than is allowed; what is larger passes as it is. `again` makes the
/// request once more, where the client listens.
pub(super) async fn adapted(
    alone: Alone,
    again: Option<Again>,
    answer: Answer,
    allowance: &Allowance,
) -> Result<Answer, Answer> {
    let headers = answer.headers();
    if headers.contains_key(CONTENT_ENCODING) {
        return Ok(answer);
    }
    let looked_at = LookedAt { said: Said::new(answer.status(), headers), alone, is_answered: false };
    if is_stream(headers) {
        let (mut head, body) = answer.into_parts();
        head.headers.remove(CONTENT_LENGTH);
        let body = match again {
            Some(again) => passing::changed(body, allowance, Listening::new(looked_at, again)),
            None => passing::changed(body, allowance, looked_at),
        };
        return Ok(Response::from_parts(head, body));
    }
    if !is_json(headers) {
        return Ok(answer);
    }
    let (mut head, body) = answer.into_parts();
    let mut first = FirstLine::default();
    // What comes before an answer is followed by one.
    let mut has_more = false;
    let read = passing::hold(body, allowance, |begun| {
        has_more = matches!(first.look(begun), Some(Found::Message(kind)) if kind != Kind::Response);
        has_more
    })
    .await;
    let unread = |unread| {
        let id = looked_at.alone.request.owned_id();
        match unread {
            Unread::Broken(..) => answer::broken_off(id.as_ref()),
            Unread::NoRoom => answer::no_room(id.as_ref()),
        }
    };
    Ok(match read.map_err(unread)? {
        Read::Whole(text) => {
            let changed = Message::read(text.clone()).ok().and_then(|message| looked_at.alone.message(&message));
            if changed.is_some() {
                head.headers.remove(CONTENT_LENGTH);
            }
            Response::from_parts(head, Body::Full(budget::changed(text, changed)))
        }
        Read::Begun(begun, body) if has_more => answer::events(one_by_one(looked_at, &begun, body, allowance)),
        Read::Begun(begun, body) => Response::from_parts(head, body.after(begun)),
    })
}

/// The answer to a request while it passes.
pub(super) struct LookedAt {
    pub(super) alone: Alone,
    said: Said,
    is_answered: bool,
}

impl LookedAt {
    /// A message as the client gets it; nothing when that is as it came.
    fn message(&mut self, message: &Message) -> Option<Bytes> {
        self.is_answered |= message.kind() == Kind::Response;
        self.alone.message(message)
    }

    /// What the client is told at the end, if there was no answer.
    fn loss(&mut self, problem: Problem) -> Option<Bytes> {
        if std::mem::replace(&mut self.is_answered, true) {
            return None;
        }
        let request = &self.alone.request;
        let fault = self.said.fault(request.method(), problem).answer(request.owned_id().as_ref());
        Some(message_event(fault.as_bytes()).into())
    }
}

pub(super) fn message_event(data: &[u8]) -> Vec<u8> {
    Frame { name: Some("message"), data, ..Default::default() }.encode()
}

/// A body of lines while it is read.
struct Lines {
    looked_at: LookedAt,
    body: Body,
    splitter: Option<LineSplitter>,
    allowance: Allowance,
    /// The room that the splitter has.
    held: Held,
}

/// Messages with line ends between them, as events.
fn one_by_one(looked_at: LookedAt, begun: &[u8], body: Body, allowance: &Allowance) -> Body {
    let mut splitter = LineSplitter::new(allowance.largest);
    splitter.buffer().extend_from_slice(begun);
    let (allowance, held) = (allowance.clone(), Held::default());
    let start = Lines { looked_at, body, splitter: Some(splitter), allowance, held };
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
                Some(Ok(frame)) => {
                    splitter.buffer().extend_from_slice(&frame.into_data().unwrap_or_default());
                    if let Err(spent) = self.allowance.keep(&mut self.held, splitter.held()) {
                        return Some(self.looked_at.loss(Problem::NoRoom).ok_or_else(|| spent.into()));
                    }
                }
                Some(Err(error)) => return Some(self.looked_at.loss(Problem::Lost).ok_or(error)),
                None => {
                    events.extend(splitter.finish().map(|line| self.event(line)).unwrap_or_default());
                    events.extend(self.looked_at.loss(Problem::NoAnswer).unwrap_or_default());
                    return Some(Ok(events.into()));
                }
            }
        }
        self.splitter = Some(splitter);
        Some(Ok(events.into()))
    }

    fn event(&mut self, line: Line) -> Vec<u8> {
        match line {
            Line::Whole(line) => match Message::read(line) {
                Ok(message) => {
                    message_event(&self.looked_at.message(&message).unwrap_or_else(|| message.text().clone()))
                }
                Err(error) => {
                    tracing::debug!(%error, "the MCP server wrote a line that is no message");
                    Vec::new()
                }
            },
            Line::TooLong(_) => self.looked_at.loss(Problem::TooLarge).unwrap_or_default().into(),
        }
    }
}

impl Change for LookedAt {
    async fn event(&mut self, event: Bytes) -> Bytes {
        let read = Event::read(&event);
        let data = read.data.as_deref().filter(|data| read.is_message() && !data.is_empty());
        let message = data.and_then(|data| Message::read(Bytes::copy_from_slice(data)).ok());
        match message.and_then(|message| self.message(&message)) {
            Some(data) => passing::with_data(&event, &data),
            None => event,
        }
    }

    fn part(&mut self, part: Bytes) -> Result<Bytes, BodyError> {
        // What is too large to be looked at may be the answer.
        self.is_answered = true;
        Ok(part)
    }

    async fn after(&mut self, is_whole: bool) -> After {
        After::End(self.loss(if is_whole { Problem::Ended } else { Problem::Lost }))
    }
}
