//! Messages out of the body of a response, however the server wrote them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use skep_mcp::sse::{Event, Piece, Splitter};
use skep_mcp::{Id, Kind, Message, MetaKey, Param, Payload, json, method};

use super::http::HttpLine;
use super::json_body::{JsonBody, TooLarge};
use super::line::{self, Lost, Replies};
use super::unanswered::{Problem, Said, is_answer};
use crate::budget::{self, Held, Spent};
use crate::transparent::upstream::FromServer;

/// How often a stream that broke is taken up again.
const RESUMPTIONS: u32 = 3;
/// How long to wait before that, unless the server says.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// What the messages are for.
#[derive(Debug)]
pub(super) enum Expected {
    /// A request, by what its client knows it by, and by the number that the server knows.
    Answer { method: Box<str>, id: Id, token: Option<Box<str>>, number: Option<u64> },
    /// Nothing in particular.
    Anything,
}

impl Expected {
    /// What is expected after a request that was sent under this number.
    pub(super) fn new(request: &Message, number: Option<u64>) -> Self {
        let id = request.owned_id().unwrap_or_else(|| Id::from(0));
        let token = request.meta(MetaKey::ProgressToken).map(Into::into);
        Self::Answer { method: request.method().into(), id, token, number }
    }
}

/// A response while it is read.
#[derive(Debug)]
pub(super) struct Reading {
    line: HttpLine,
    said: Said,
    body: FromServer,
    form: Form,
    ready: VecDeque<Message>,
    expected: Expected,
    /// The room that what was read has.
    held: Held,
    last_event: Option<String>,
    retry: Duration,
    resumptions: u32,
    /// Whether the body has anything in it, and whether that is the answer to another request.
    is_begun: bool,
    is_other: bool,
    is_over: bool,
    /// Why what comes last is ours, if the server has not answered.
    lost: Option<Box<str>>,
}

#[derive(Debug)]
enum Form {
    Events(Splitter),
    Json(JsonBody),
}

impl Reading {
    pub(super) fn new(line: HttpLine, response: Response<FromServer>, expected: Expected) -> Self {
        let largest = line.allowance().largest;
        let form = if is_stream(response.headers()) {
            Form::Events(Splitter::new(largest))
        } else {
            Form::Json(JsonBody::new(largest))
        };
        Self {
            line,
            said: Said::new(response.status(), response.headers()),
            body: response.into_body(),
            form,
            ready: VecDeque::new(),
            expected,
            held: Held::default(),
            last_event: None,
            retry: RETRY,
            resumptions: 0,
            is_begun: false,
            is_other: false,
            is_over: false,
            lost: None,
        }
    }

    pub(super) fn replies(self) -> Replies {
        let messages = futures::stream::unfold(self, async |mut reading| Some((reading.next().await?, reading)));
        messages.boxed()
    }

    /// The answer, if it is the server's own.
    pub(super) async fn answer(mut self) -> Result<Message, Lost> {
        while let Some(message) = self.next().await {
            if message.kind() == Kind::Response {
                return self.lost.take().map_or(Ok(message), |reason| Err(Lost::Unanswered(reason)));
            }
        }
        Err(Lost::Unreached)
    }

    async fn next(&mut self) -> Option<Message> {
        loop {
            if self.is_over {
                return None;
            }
            while let Some(message) = self.ready.pop_front() {
                if let Some(message) = self.take(&message) {
                    return Some(message);
                }
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Err(problem) = self.add(&frame.into_data().unwrap_or_default()) {
                        return self.lose(problem);
                    }
                }
                ended => {
                    let problem = self.finish(ended.is_none());
                    if self.ready.is_empty() && !self.resume().await {
                        return self.lose(problem);
                    }
                }
            }
        }
    }

    /// Takes what has arrived, unless it is too much.
    fn add(&mut self, data: &[u8]) -> Result<(), Problem> {
        self.is_begun |= !data.trim_ascii().is_empty();
        let held = match &mut self.form {
            Form::Json(body) => {
                let texts = body.add(data).map_err(|TooLarge| Problem::TooLarge)?;
                self.ready.extend(texts.into_iter().filter_map(read).flatten());
                body.held()
            }
            Form::Events(splitter) => {
                splitter.push(data);
                while let Some(piece) = splitter.next_piece() {
                    let Piece::Event(event) = piece else { return Err(Problem::TooLarge) };
                    let event = Event::read(&event);
                    if let Some(id) = event.id {
                        self.last_event = String::from_utf8(id.to_vec()).ok();
                    }
                    if let Some(retry) = event.retry {
                        self.retry = Duration::from_millis(retry).min(LONGEST_RETRY);
                    }
                    if let Some(data) = event.data.as_deref().filter(|data| event.is_message() && !data.is_empty()) {
                        let data = std::mem::take(&mut self.held).with(Bytes::copy_from_slice(data));
                        self.ready.extend(read(data).unwrap_or_default());
                    }
                }
                splitter.held()
            }
        };
        self.line.allowance().keep(&mut self.held, held).map_err(|Spent| Problem::NoRoom)
    }

    /// Takes what is left when the body ends, and says what it means if there is no answer in it.
    fn finish(&mut self, is_whole: bool) -> Problem {
        let Form::Json(body) = &mut self.form else {
            return if is_whole { Problem::Ended } else { Problem::Lost };
        };
        let text = std::mem::take(&mut self.held).with(body.finish());
        let id = if let Expected::Answer { id, .. } = &self.expected { id.as_json() } else { "0" };
        let messages = read(text.clone()).or_else(|| lines(&text)).or_else(|| error_without_id(&text, id));
        self.ready.extend(messages.unwrap_or_default());
        match (is_whole, self.is_begun) {
            (false, _) => Problem::Lost,
            (true, false) => Problem::Empty,
            (true, true) => Problem::NoAnswer,
        }
    }

    /// Takes a stream up again after its last event, where the server keeps it.
    async fn resume(&mut self) -> bool {
        let Some(after) = self.last_event.clone().filter(|_| self.line.has_sessions()) else { return false };
        if let Expected::Anything = self.expected {
            return false;
        }
        while self.resumptions < RESUMPTIONS {
            self.resumptions += 1;
            tokio::time::sleep(self.retry).await;
            if let Ok(response) = self.line.get(Some(&after)).await {
                self.form = Form::Events(Splitter::new(self.line.allowance().largest));
                self.body = response.into_body();
                return true;
            }
        }
        false
    }

    /// A message with the client's own id or token again. One that is for nobody is dropped.
    fn take(&mut self, message: &Message) -> Option<Message> {
        let Expected::Answer { id, token, number, .. } = &self.expected else { return Some(message.clone()) };
        match message.kind() {
            Kind::Response if !is_answer(message, number.map_or_else(|| id.clone(), Id::from).as_json()) => {
                self.is_other = true;
                None
            }
            Kind::Response => {
                self.is_over = true;
                // What an exchange is answered with is its answer, whatever some servers call it.
                restored(message, message.id_span().map(|place| (place, id.as_json())))
            }
            Kind::Notification if message.method() == method::PROGRESS => {
                let place = message.param_span(Param::ProgressToken)?;
                restored(message, Some((place, token.as_deref()?)))
            }
            Kind::Notification | Kind::Request => Some(message.clone()),
        }
    }

    /// The end of an exchange without an answer.
    fn lose(&mut self, problem: Problem) -> Option<Message> {
        self.is_over = true;
        let Expected::Answer { method, id, .. } = &self.expected else { return None };
        let problem = if self.is_other { Problem::OtherId } else { problem };
        let fault = self.said.fault(method, problem);
        self.lost = Some(fault.message.as_ref().into());
        Message::read(fault.answer(Some(id)).into()).ok()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Expected::Answer { number: Some(number), .. } = self.expected else { return };
        if !self.is_over {
            self.line.call_off(number);
        }
    }
}

fn restored(message: &Message, change: Option<(json::Span, &str)>) -> Option<Message> {
    let change = change.map(|(place, value)| (place, value.as_bytes()));
    // What is made of it keeps its room.
    Message::read(budget::made_of(message.text(), message.with(change))).ok()
}

/// The messages that a text is.
fn read(text: Bytes) -> Option<Vec<Message>> {
    match Payload::read(text).ok()? {
        Payload::Single(message) => Some(vec![message]),
        Payload::Batch(messages) => Some(messages.into_iter().flatten().collect()),
    }
}

/// The messages of a text that has one to a line.
fn lines(text: &Bytes) -> Option<Vec<Message>> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let messages: Option<Vec<Vec<Message>>> = lines.map(|line| read(text.slice_ref(line))).collect();
    messages.map(|messages| messages.into_iter().flatten().collect())
}

/// An error that some servers give without saying to what.
fn error_without_id(text: &[u8], id: &str) -> Option<Vec<Message>> {
    let text = std::str::from_utf8(text).ok()?;
    let error = json::find(text, &["error"]).ok()??.of(text);
    Some(vec![Message::read(line::error(id, error)).ok()?])
}

pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    is_kind(headers, "text/event-stream")
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    is_kind(headers, "application/json")
}

fn is_kind(headers: &HeaderMap, kind: &str) -> bool {
    let told = headers.get(CONTENT_TYPE).and_then(|told| told.to_str().ok()).unwrap_or_default();
    told.split(';').next().is_some_and(|told| told.trim().eq_ignore_ascii_case(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_messages_in_one_text_are_found() {
        let message = r#"{"jsonrpc":"2.0","method":"a"}"#;
        assert_eq!(lines(&format!("{message}\n\n{message}\r\n").into()).unwrap().len(), 2);
        assert!(lines(&Bytes::from_static(b"nonsense")).is_none());
        let told =
            error_without_id(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}"#, "7").unwrap();
        assert_eq!((told[0].id(), told[0].error()), (Some("7"), Some(r#"{"code":-32000,"message":"m"}"#)));
    }
}
