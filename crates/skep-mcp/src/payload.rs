//! What one body or one line holds: a message, or a batch of them.

use std::fmt;

use bytes::Bytes;

use crate::fault::{Fault, INVALID_REQUEST, PARSE_ERROR};
use crate::id::Id;
use crate::json::{JsonError, Scanner, Span};
use crate::message::Message;

/// How many messages a batch may have.
const BATCH_MESSAGES: usize = 50;

/// One message or several.
#[derive(Debug)]
pub enum Payload {
    /// One message.
    Single(Message),
    /// A batch, which only revision 2025-03-26 has. Members that are no messages are told one by one.
    Batch(Vec<Result<Message, ReadError>>),
}

impl Payload {
    /// Reads what came.
    pub fn read(text: Bytes) -> Result<Self, ReadError> {
        match text.iter().find(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
            Some(b'[') => Ok(Self::Batch(Self::read_batch(&text)?)),
            _ => Message::read(text).map(Self::Single),
        }
    }

    fn read_batch(text: &Bytes) -> Result<Vec<Result<Message, ReadError>>, ReadError> {
        let json = std::str::from_utf8(text).map_err(|error| ReadError::not_json(&error))?;
        let mut spans: Vec<Span> = Vec::new();
        let mut scanner = Scanner::new(json);
        let mut count = 0_usize;
        scanner
            .array(|scanner| {
                let span = scanner.value()?;
                count += 1;
                if count <= BATCH_MESSAGES {
                    spans.push(span);
                }
                Ok(())
            })
            .and_then(|_| scanner.end())
            .map_err(|error| ReadError::not_json(&error))?;
        if !(1..=BATCH_MESSAGES).contains(&count) {
            return Err(ReadError::no_message("a batch has from 1 to 50 messages", None));
        }
        Ok(spans.into_iter().map(|span| Message::read(text.slice(span.start..span.end))).collect())
    }
}

/// Why something is no message.
#[derive(Debug, Clone)]
pub struct ReadError {
    fault: Box<Fault>,
    id: Option<Id>,
    is_too_deep: bool,
}

impl ReadError {
    pub(crate) fn not_json(error: &dyn fmt::Display) -> Self {
        let fault = Box::new(Fault::new(PARSE_ERROR, format!("Parse error: {error}")));
        Self { fault, id: None, is_too_deep: false }
    }

    pub(crate) fn no_message(reason: &str, id: Option<Id>) -> Self {
        let fault = Box::new(Fault::new(INVALID_REQUEST, format!("Invalid request: {reason}")));
        Self { fault, id, is_too_deep: false }
    }

    /// A member that is there twice is JSON, but says two things at once.
    pub(crate) fn json(error: JsonError, id: Option<Id>) -> Self {
        match error {
            JsonError::Duplicate { .. } => Self::no_message(&error.to_string(), id),
            JsonError::TooDeep { .. } => Self { id, is_too_deep: true, ..Self::not_json(&error) },
            JsonError::Syntax { .. } => Self { id, ..Self::not_json(&error) },
        }
    }

    /// Whether it may well be a message, which nests deeper than what is read.
    pub fn is_too_deep(&self) -> bool {
        self.is_too_deep
    }

    /// The error to answer with.
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The id to answer to, if it could be read.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// The answer.
    pub fn answer(&self) -> String {
        self.fault.answer(self.id())
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.fault.message)
    }
}

impl std::error::Error for ReadError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(text: &str) -> Result<usize, i64> {
        match Payload::read(Bytes::copy_from_slice(text.as_bytes())) {
            Ok(Payload::Batch(messages)) => Ok(messages.iter().filter(|message| message.is_ok()).count()),
            Ok(Payload::Single(_)) => panic!("{text} is no batch"),
            Err(error) => Err(error.fault().code),
        }
    }

    #[test]
    fn batches_are_cut_into_their_messages() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(batch(&format!("\n [{ping} , {ping}, 7]")), Ok(2));
        assert_eq!(batch("[]"), Err(INVALID_REQUEST));
        assert_eq!(batch(&format!("[{}]", vec![ping; 51].join(","))), Err(INVALID_REQUEST));
        assert_eq!(batch("["), Err(PARSE_ERROR));
        assert_eq!(batch("[1] x"), Err(PARSE_ERROR));
    }
}
