//! Streams of events on their way to a client. Somebody may change an event; what nobody changes passes byte for byte.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use skep_mcp::sse::{Piece, Splitter};

use crate::body::{Body, BodyError};
use crate::budget::{self, Allowance, Spent};

/// What a text may begin with that says how its letters are written.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// Changes events.
pub(crate) trait Change: Send + 'static {
    /// An event as the client gets it.
    fn event(&mut self, event: Bytes) -> impl Future<Output = Bytes> + Send;

    /// How much of an event is to be held from now on, if that is another size than before.
    fn largest(&self) -> Option<usize> {
        None
    }

    /// A part of an event that is too large to be held.
    fn part(&mut self, part: Bytes) -> Result<Bytes, BodyError> {
        Ok(part)
    }

    /// Whether nothing more is to come on a stream that has not ended yet.
    fn is_over(&self) -> bool {
        false
    }

    /// What comes after a stream that has ended, or broken off. It ends as it did if nobody says otherwise.
    fn after(&mut self, _is_whole: bool) -> impl Future<Output = After> + Send {
        std::future::ready(After::End(None))
    }
}

/// What comes after the end of a stream.
pub(crate) enum After {
    /// Nothing more, or this.
    End(Option<Bytes>),
    /// This, and then what is told when that is asked again.
    Meanwhile(Bytes),
    /// Another stream in its place.
    Another(Body),
}

/// What is known while a stream passes.
struct Passing<C> {
    body: Body,
    splitter: Splitter,
    allowance: Allowance,
    /// The room that the splitter has.
    held: budget::Held,
    change: C,
    /// How the body has ended.
    end: Option<Result<(), BodyError>>,
    is_over: bool,
}

/// A stream with its events changed. Not more of an event is held than is allowed.
pub(crate) fn changed(body: Body, allowance: &Allowance, change: impl Change) -> Body {
    let (splitter, allowance, held) = (Splitter::new(allowance.largest), allowance.clone(), budget::Held::default());
    let start = Passing { body, splitter, allowance, held, change, end: None, is_over: false };
    let chunks = futures::stream::unfold(start, async |mut passing| {
        if passing.is_over {
            return None;
        }
        let chunk = passing.next().await;
        passing.is_over |= chunk.is_err();
        Some((chunk, passing))
    });
    Body::stream(chunks.filter(|chunk| std::future::ready(!matches!(chunk, Ok(chunk) if chunk.is_empty()))))
}

impl<C: Change> Passing<C> {
    async fn next(&mut self) -> Result<Bytes, BodyError> {
        let mut passed = Vec::new();
        if self.end.is_none() {
            match self.body.frame().await {
                Some(Ok(frame)) => return self.pass(frame.data_ref().map(Bytes::as_ref).unwrap_or_default()).await,
                Some(Err(error)) => self.end = Some(Err(error)),
                None => {
                    self.end = Some(Ok(()));
                    // Some clients take an event without the blank line that ends it.
                    let rest = std::mem::replace(&mut self.splitter, Splitter::new(0)).finish();
                    if let Some(rest) = rest {
                        passed.extend_from_slice(&self.change.event(rest).await);
                    }
                }
            }
        }
        let is_whole = matches!(self.end, Some(Ok(())));
        let after = self.change.after(is_whole).await;
        self.is_over = matches!(after, After::End(_));
        let more = match after {
            After::End(None) => return self.end.take().unwrap_or(Ok(())).map(|()| passed.into()),
            After::End(Some(last)) => last,
            After::Meanwhile(meanwhile) => meanwhile,
            After::Another(body) => {
                (self.body, self.splitter, self.end) = (body, Splitter::new(self.allowance.largest), None);
                Bytes::new()
            }
        };
        // The event before it may have no end.
        passed.extend_from_slice(if passed.is_empty() { b"" } else { b"\n\n" });
        passed.extend_from_slice(&more);
        Ok(passed.into())
    }

    /// What becomes of a part of the stream.
    async fn pass(&mut self, part: &[u8]) -> Result<Bytes, BodyError> {
        let mut passed = Vec::new();
        if let Some(largest) = self.change.largest() {
            self.splitter.hold(largest);
        }
        self.splitter.push(part);
        while let Some(piece) = self.splitter.next_piece() {
            match piece {
                Piece::Event(event) => passed.extend_from_slice(&self.change.event(event).await),
                Piece::Part(part) => passed.extend_from_slice(&self.change.part(part)?),
            }
        }
        passed.extend_from_slice(&self.splitter.rest_of_line_end().unwrap_or_default());
        // What was held until now has its room until the client has read it.
        let has_passed = passed.len() > self.splitter.held();
        let held = if has_passed { std::mem::take(&mut self.held) } else { budget::Held::default() };
        if let Err(spent) = self.allowance.keep(&mut self.held, self.splitter.held()) {
            self.splitter = Splitter::new(self.allowance.largest);
            (self.body, self.end) = (Body::default(), Some(Err(spent.into())));
        }
        if self.change.is_over() {
            (self.body, self.end) = (Body::default(), Some(Ok(())));
        }
        Ok(held.with(passed.into()))
    }
}

/// What was read of a body.
pub(crate) enum Read {
    Whole(Bytes),
    /// Its beginning, and the rest, which was not read.
    Begun(Bytes, Body),
}

/// Why a body was not read.
pub(crate) enum Unread {
    /// It broke off after this.
    Broken(Bytes, BodyError),
    /// So much is held that there is no room for it.
    NoRoom,
}

/// Reads a body until it ends, is larger than it may be, or has begun in a way that is enough.
pub(crate) async fn hold(
    mut body: Body,
    allowance: &Allowance,
    mut is_enough: impl FnMut(&[u8]) -> bool,
) -> Result<Read, Unread> {
    let (mut text, mut held) = (BytesMut::new(), budget::Held::default());
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        match frame {
            Ok(frame) => text.extend_from_slice(frame.data_ref().map(Bytes::as_ref).unwrap_or_default()),
            Err(error) => return Err(Unread::Broken(text.freeze(), error)),
        }
        if is_enough(&text) || text.len() > allowance.largest {
            return Ok(Read::Begun(held.with(text.freeze()), body));
        }
        allowance.keep(&mut held, text.len()).map_err(|Spent| Unread::NoRoom)?;
    }
    Ok(Read::Whole(held.with(text.freeze())))
}

/// An event with other data, and all its other lines as they are.
pub(crate) fn with_data(event: &[u8], data: &[u8]) -> Bytes {
    let mut changed = Vec::with_capacity(event.len() + data.len());
    let (mut rest, mut is_written) = (event, false);
    while !rest.is_empty() {
        let at = memchr::memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        let end = if rest[at..].starts_with(b"\r\n") { at + 2 } else { rest.len().min(at + 1) };
        let (line, after) = rest.split_at(end);
        rest = after;
        // The mark that a text may begin with is no part of its first line.
        let mark = if line.starts_with(MARK) { MARK.len() } else { 0 };
        let field = &line[mark..at];
        if field != b"data" && !field.starts_with(b"data:") {
            changed.extend_from_slice(line);
        } else if !is_written {
            is_written = true;
            changed.extend_from_slice(&line[..mark]);
            for (number, part) in data.split(|byte| *byte == b'\n').enumerate() {
                let start: &[u8] = if number == 0 { b"data: " } else { b"\ndata: " };
                changed.extend_from_slice(start);
                changed.extend_from_slice(part.strip_suffix(b"\r").unwrap_or(part));
            }
            changed.extend_from_slice(&line[at..]);
        }
    }
    changed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_data_of_an_event_is_replaced() {
        for (event, data, expected) in [
            ("id: 7\n: first\ndata: a\nretry: 5\n\n", "b", "id: 7\n: first\ndata: b\nretry: 5\n\n"),
            ("data:a\r\ndata:b\r\nx\r\n\r", "c", "data: c\r\nx\r\n\r"),
            ("\u{feff}data: a\rdata\rid: 1\r\r", "b", "\u{feff}data: b\rid: 1\r\r"),
            ("data: a\n\n", "b\nc", "data: b\ndata: c\n\n"),
            ("dataset: a\ndata: b", "c", "dataset: a\ndata: c"),
        ] {
            assert_eq!(with_data(event.as_bytes(), data.as_bytes()), expected, "{event:?}");
        }
    }
}
