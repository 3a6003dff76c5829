//! Looks at an answer for as long as its record needs.

use http::StatusCode;
use http::header::CONTENT_LENGTH;
use skep_mcp::sse::{Piece, Splitter};

use super::event::Pending;
use super::outcome;
use super::settings::AuditSettings;
use crate::answer::Answer;
use crate::body::Body;
use crate::eras::http::is_stream;
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
    let events = is_stream(answer.headers()).then(|| Events {
        splitter: Splitter::new(LOOKED_AT),
        has_one_answer: !pending.is_batch(),
        are_kept: settings.has_answers || settings.detects_errors,
        is_answered: false,
    });
    let seen = Seen { status, text: Vec::new(), size: 0, expected, events, pending: Some(pending) };
    answer.map(|body| watch::watched(body, seen))
}

/// What was seen of an answer.
struct Seen {
    status: StatusCode,
    text: Vec<u8>,
    size: usize,
    /// How large it is, if that is known. Nobody asks for more when so much has come.
    expected: Option<usize>,
    /// What is known about it where it is a stream of events.
    events: Option<Events>,
    pending: Option<Pending>,
}

/// What was seen of a stream of events, which may last.
struct Events {
    splitter: Splitter,
    /// Whether nothing matters that comes after an answer.
    has_one_answer: bool,
    /// Whether somebody wants to look at them later on.
    are_kept: bool,
    /// Whether there was an answer.
    is_answered: bool,
}

impl Events {
    /// Whether whatever comes now makes no difference any more.
    fn are_over(&self) -> bool {
        self.is_answered && self.has_one_answer
    }

    fn see(&mut self, part: &[u8]) {
        self.splitter.push(part);
        while let Some(piece) = self.splitter.next_piece() {
            let (Piece::Event(event) | Piece::Part(event)) = piece;
            self.is_answered = self.is_answered || outcome::has_answer(&event);
        }
    }
}

impl Seen {
    /// Whether the client has its answer, although that may not have come to its end.
    fn is_answered(&self) -> bool {
        self.events.as_ref().map_or_else(|| outcome::is_whole(&self.text), |events| events.is_answered)
    }
}

impl Watcher for Seen {
    fn see(&mut self, part: &[u8]) {
        self.size += part.len();
        if let Some(events) = &mut self.events {
            if events.are_over() {
                return;
            }
            events.see(part);
            if !events.are_kept {
                return;
            }
        }
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
        if self.expected == Some(self.size) || !self.status.is_success() || self.is_answered() {
            self.end();
        }
        // What is still pending is an error.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRESS: &str =
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"result\":1}}\n\n";
    const ANSWER: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n";

    fn seen(are_kept: bool, has_one_answer: bool) -> Seen {
        let splitter = Splitter::new(LOOKED_AT);
        let events = Some(Events { splitter, has_one_answer, are_kept, is_answered: false });
        Seen { status: StatusCode::OK, text: Vec::new(), size: 0, expected: None, events, pending: None }
    }

    #[test]
    fn of_a_stream_only_what_somebody_wants_to_look_at_is_kept_and_nothing_after_the_answer() {
        for (are_kept, has_one_answer, kept) in [
            (true, true, PROGRESS.len() + ANSWER.len()),
            (true, false, 2 * PROGRESS.len() + ANSWER.len()),
            (false, true, 0),
            (false, false, 0),
        ] {
            let mut seen = seen(are_kept, has_one_answer);
            for part in [PROGRESS, &ANSWER[..20]] {
                seen.see(part.as_bytes());
                assert!(!seen.is_answered());
            }
            seen.see(&ANSWER.as_bytes()[20..]);
            assert!(seen.is_answered());
            seen.see(PROGRESS.as_bytes());
            assert!(seen.is_answered());
            assert_eq!((seen.text.len(), seen.size), (kept, 2 * PROGRESS.len() + ANSWER.len()));
        }
    }
}
