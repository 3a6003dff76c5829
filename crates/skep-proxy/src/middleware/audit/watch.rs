//! Looks at an answer for as long as its record needs.

use http::StatusCode;
use http::header::CONTENT_LENGTH;

use super::event::Pending;
use super::outcome;
use super::settings::AuditSettings;
use crate::answer::Answer;
use crate::body::Body;
use crate::middleware::watch::{self, Watcher};

/// So much of an answer is looked at.
const LOOKED_AT: usize = 1 << 20;

/// The answer, with its end recorded.
pub(super) fn watched(answer: Answer, pending: Pending, settings: &AuditSettings) -> Answer {
    let status = answer.status();
    if let Body::Full(text) = answer.body() {
        pending.end(status, text, text.len());
        return answer;
    }
    // A failure is one, however much of it arrives.
    if !settings.has_answers && !status.is_success() {
        pending.end(status, &[], 0);
        return answer;
    }
    let length = answer.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let expected = if pending.has_body(status) { length } else { Some(0) };
    let seen = Seen { status, text: Vec::new(), size: 0, expected, pending: Some(pending) };
    answer.map(|body| watch::watched(body, seen))
}

/// What was seen of an answer.
struct Seen {
    status: StatusCode,
    text: Vec<u8>,
    size: usize,
    /// How large it is, if that is known. Nobody asks for more when so much has come.
    expected: Option<usize>,
    pending: Option<Pending>,
}

impl Watcher for Seen {
    fn see(&mut self, part: &[u8]) {
        self.size += part.len();
        let room = LOOKED_AT.saturating_sub(self.text.len()).min(part.len());
        self.text.extend_from_slice(&part[..room]);
    }

    fn end(&mut self) {
        if let Some(pending) = self.pending.take() {
            pending.end(self.status, &self.text, self.size);
        }
    }
}

/// A client that goes away ends it, too, and so does a server that breaks off. Whoever has the answer by then need not hear
/// the end of a stream.
impl Drop for Seen {
    fn drop(&mut self) {
        if self.pending.is_none() {
            return;
        }
        let is_whole = self.expected == Some(self.size) || outcome::is_answered(&self.text);
        if is_whole || !self.status.is_success() {
            self.end();
        }
        // What is still pending is an error.
    }
}
