//! A body that calls itself JSON while it is read: one message, or several with line ends between them.

use bytes::{Bytes, BytesMut};
use skep_mcp::lines::{Line, LineSplitter};
use skep_mcp::{Kind, Message};

/// What the first line of a body is. Each byte is looked at once, however the body comes.
#[derive(Debug, Default)]
pub(crate) struct FirstLine {
    /// So much of the body is space before the first line.
    start: usize,
    /// So much of it has no line end.
    searched: usize,
    found: Option<Found>,
}

/// A first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is a message.
    Message(Kind),
    /// It is none, so that the body is one text of several lines.
    Part,
}

impl FirstLine {
    /// Looks at as much of a body as there is, which has all that was there the last time. Nothing while its first line has
    /// no end.
    pub(crate) fn look(&mut self, begun: &[u8]) -> Option<Found> {
        if self.found.is_some() {
            return self.found;
        }
        let unseen = begun.get(self.start..).unwrap_or_default();
        if self.start == self.searched {
            self.start += unseen.len() - unseen.trim_ascii_start().len();
            self.searched = self.start;
        }
        let unsearched = begun.get(self.searched..).unwrap_or_default();
        match memchr::memchr(b'\n', unsearched) {
            Some(end) => {
                let line = begun.get(self.start..self.searched + end).unwrap_or_default();
                let message = Message::read(Bytes::copy_from_slice(line));
                self.found = Some(message.map_or(Found::Part, |message| Found::Message(message.kind())));
            }
            None => self.searched = begun.len(),
        }
        self.found
    }
}

/// A body.
#[derive(Debug)]
pub(super) struct JsonBody {
    form: Form,
    largest: usize,
}

#[derive(Debug)]
enum Form {
    /// Everything so far, while it may be one text.
    Text(BytesMut, FirstLine),
    /// A message to a line.
    Lines(LineSplitter),
}

/// It is larger than what is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl JsonBody {
    /// A body, or a line of it, of so many bytes at most.
    pub(super) fn new(largest: usize) -> Self {
        Self { form: Form::Text(BytesMut::new(), FirstLine::default()), largest }
    }

    /// Takes what has arrived, and gives the texts of the messages that are there in full.
    pub(super) fn add(&mut self, data: &[u8]) -> Result<Vec<Bytes>, TooLarge> {
        match &mut self.form {
            Form::Text(text, first) => {
                text.extend_from_slice(data);
                if let Some(Found::Message(_)) = first.look(text) {
                    // What follows a message has one to a line, too.
                    let mut lines = LineSplitter::new(self.largest);
                    lines.buffer().unsplit(std::mem::take(text));
                    self.form = Form::Lines(lines);
                    return self.lines();
                }
                if text.len() > self.largest { Err(TooLarge) } else { Ok(Vec::new()) }
            }
            Form::Lines(lines) => {
                lines.buffer().extend_from_slice(data);
                self.lines()
            }
        }
    }

    fn lines(&mut self) -> Result<Vec<Bytes>, TooLarge> {
        let Form::Lines(lines) = &mut self.form else { return Ok(Vec::new()) };
        let mut texts = Vec::new();
        while let Some(line) = lines.next_line() {
            texts.push(whole(line)?);
        }
        Ok(texts)
    }

    /// How many bytes it holds.
    pub(super) fn held(&self) -> usize {
        match &self.form {
            Form::Text(text, _) => text.len(),
            Form::Lines(lines) => lines.held(),
        }
    }

    /// What is left when nothing more will come.
    pub(super) fn finish(&mut self) -> Bytes {
        let empty = Form::Text(BytesMut::new(), FirstLine::default());
        match std::mem::replace(&mut self.form, empty) {
            Form::Text(text, _) => text.freeze(),
            Form::Lines(lines) => lines.finish().and_then(|line| whole(line).ok()).unwrap_or_default(),
        }
    }
}

fn whole(line: Line) -> Result<Bytes, TooLarge> {
    match line {
        Line::Whole(line) => Ok(line),
        Line::TooLong(_) => Err(TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const NOTE: &str = r#"{"jsonrpc":"2.0","method":"a"}"#;

    #[test]
    fn messages_come_line_by_line_if_the_first_line_is_one() {
        let mut body = JsonBody::new(100);
        assert_eq!(body.add(b" \r\n ").unwrap(), Vec::<Bytes>::new());
        let (half, rest) = NOTE.split_at(9);
        assert_eq!(body.add(half.as_bytes()).unwrap(), Vec::<Bytes>::new());
        assert_eq!(body.add(format!("{rest}\r\n{NOTE}\n{half}").as_bytes()).unwrap(), [NOTE, NOTE]);
        assert_eq!(body.add(rest.as_bytes()).unwrap(), Vec::<Bytes>::new());
        assert_eq!(body.finish(), NOTE);
        assert_eq!(body.finish(), "");
        let mut body = JsonBody::new(100);
        assert_eq!(body.add(b"{\n \"jsonrpc\": \"2.0\",\n").unwrap(), Vec::<Bytes>::new());
        assert_eq!(body.add(b"}\n").unwrap(), Vec::<Bytes>::new());
        assert_eq!(body.finish(), "{\n \"jsonrpc\": \"2.0\",\n}\n");
        assert_eq!(body.add(&[b'x'; 101]), Err(TooLarge));
    }

    #[test]
    fn a_text_of_many_lines_is_read_once() {
        let begun = Instant::now();
        let mut body = JsonBody::new(64 << 20);
        body.add(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[\n").unwrap();
        for _ in 0..40_000 {
            assert_eq!(body.add(b"\"one of many lines, each of which comes alone\",\n").unwrap(), Vec::<Bytes>::new());
        }
        body.add(b"0]}\n").unwrap();
        assert!(Message::read(body.finish()).is_ok());
        // A line without an end is searched once, too.
        let mut first = FirstLine::default();
        let text = vec![b'x'; 4 << 20];
        for end in (0..text.len()).step_by(100) {
            assert_eq!(first.look(&text[..end]), None);
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
