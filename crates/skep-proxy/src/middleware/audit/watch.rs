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

/// So much of an answer is looked at, and so much of one event of a stream, in bytes. There may be thousands of them at
/// the same time.
const LOOKED_AT: usize = 64 << 10;
/// So much of one is kept where somebody wants to have it all.
const MOST: usize = 1 << 20;

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
    let events = is_stream(answer.headers()).then(|| Events::new(Kept::by(settings), !pending.is_batch()));
    let most = if settings.has_answers { settings.data_bytes.clamp(LOOKED_AT, MOST) } else { LOOKED_AT };
    let seen = Seen { status, text: Vec::new(), most, size: 0, expected, events, pending: Some(pending) };
    answer.map(|body| watch::watched(body, seen))
}

/// What was seen of an answer.
struct Seen {
    status: StatusCode,
    text: Vec<u8>,
    /// How much of it is kept at most.
    most: usize,
    size: usize,
    /// How large it is, if that is known. Nobody asks for more when so much has come.
    expected: Option<usize>,
    /// What is known about it where it is a stream of events.
    events: Option<Events>,
    pending: Option<Pending>,
}

/// What of a stream somebody wants to look at later on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    /// The events that hold answers.
    Answers,
    Everything,
}

impl Kept {
    fn by(settings: &AuditSettings) -> Self {
        match (settings.has_answers, settings.detects_errors) {
            (true, _) => Self::Everything,
            (false, true) => Self::Answers,
            (false, false) => Self::Nothing,
        }
    }
}

/// What was seen of a stream of events, which may last.
struct Events {
    splitter: Splitter,
    /// Of an event that is too large to be looked at.
    large: Option<Large>,
    /// Whether nothing matters that comes after an answer.
    has_one_answer: bool,
    kept: Kept,
    /// Whether there was an answer.
    is_answered: bool,
}

/// What is known of an event that comes in parts.
struct Large {
    is_answer: bool,
    /// How it has ended so far.
    last: [u8; 2],
}

impl Events {
    fn new(kept: Kept, has_one_answer: bool) -> Self {
        Self { splitter: Splitter::new(LOOKED_AT), large: None, has_one_answer, kept, is_answered: false }
    }

    /// Whether whatever comes now makes no difference any more.
    fn are_over(&self) -> bool {
        self.is_answered && self.has_one_answer
    }

    /// Looks at a part of the stream, and tells the answers that have come with it.
    fn see(&mut self, part: &[u8], mut tell: impl FnMut(&[u8])) {
        self.splitter.push(part);
        while let Some(piece) = self.splitter.next_piece() {
            match piece {
                Piece::Event(event) => {
                    if outcome::has_answer(&event) {
                        self.is_answered = true;
                        tell(&event);
                    }
                }
                Piece::Part(part) => self.see_part(&part),
            }
        }
    }

    fn see_part(&mut self, part: &[u8]) {
        let large = self.large.get_or_insert_with(|| Large { is_answer: outcome::begins_answer(part), last: [0; 2] });
        large.last = match part {
            [] => large.last,
            [only] => [large.last[1], *only],
            [.., one, other] => [*one, *other],
        };
        // The blank line that ends it, which no other part of it can end with.
        if matches!(&large.last, b"\n\n" | b"\r\r" | b"\n\r") {
            self.is_answered = self.is_answered || large.is_answer;
            self.large = None;
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
        let (text, most) = (&mut self.text, self.most);
        let mut keep = |part: &[u8]| {
            let room = most.saturating_sub(text.len()).min(part.len());
            text.extend_from_slice(&part[..room]);
        };
        match &mut self.events {
            None => keep(part),
            Some(events) if events.are_over() => {}
            Some(events) => match events.kept {
                Kept::Nothing => events.see(part, |_| {}),
                Kept::Answers => events.see(part, keep),
                Kept::Everything => {
                    events.see(part, |_| {});
                    keep(part);
                }
            },
        }
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

    fn seen(kept: Kept, has_one_answer: bool) -> Seen {
        let events = Some(Events::new(kept, has_one_answer));
        Seen {
            status: StatusCode::OK,
            text: Vec::new(),
            most: LOOKED_AT,
            size: 0,
            expected: None,
            events,
            pending: None,
        }
    }

    #[test]
    fn of_a_stream_only_what_somebody_wants_to_look_at_is_kept_and_nothing_after_the_answer() {
        for (kept, has_one_answer, size) in [
            (Kept::Everything, true, PROGRESS.len() + ANSWER.len()),
            (Kept::Everything, false, 2 * PROGRESS.len() + ANSWER.len()),
            (Kept::Answers, true, ANSWER.len()),
            (Kept::Answers, false, ANSWER.len()),
            (Kept::Nothing, true, 0),
            (Kept::Nothing, false, 0),
        ] {
            let mut seen = seen(kept, has_one_answer);
            for part in [PROGRESS, &ANSWER[..20]] {
                seen.see(part.as_bytes());
                assert!(!seen.is_answered());
            }
            seen.see(&ANSWER.as_bytes()[20..]);
            assert!(seen.is_answered());
            seen.see(PROGRESS.as_bytes());
            assert!(seen.is_answered());
            assert_eq!((seen.text.len(), seen.size), (size, 2 * PROGRESS.len() + ANSWER.len()));
        }
    }

    /// The bytes that are held for an answer that is looked at.
    fn held(seen: &Seen) -> usize {
        seen.text.capacity() + seen.events.as_ref().map_or(0, |events| events.splitter.held())
    }

    #[test]
    fn a_large_event_is_an_answer_when_all_of_it_has_come_and_is_not_held() {
        let large = |begin: &str, end: &str| format!("data: {begin}{}\"}}}}{end}", "x".repeat(4 * LOOKED_AT));
        let answer = r#"{"jsonrpc":"2.0","id":2,"result":{"text":""#;
        let question = r#"{"jsonrpc":"2.0","id":2,"method":"x","params":{"result":""#;
        for (begin, end, expected, after) in [
            (answer, "\n\n", true, ANSWER.len()),
            (answer, "\r\r", true, ANSWER.len()),
            // The last half of its end is the first byte of what comes next.
            (answer, "\r\n\r\n", true, ANSWER.len() + 1),
            (answer, "\n", false, 0),
            (answer, "", false, 0),
            (question, "\n\n", false, ANSWER.len()),
        ] {
            let text = large(begin, end);
            for size in [1000, 4096, text.len() - 1, text.len()] {
                for kept in [Kept::Answers, Kept::Everything, Kept::Nothing] {
                    let mut seen = seen(kept, true);
                    for part in text.as_bytes().chunks(size) {
                        seen.see(part);
                    }
                    assert_eq!(seen.is_answered(), expected, "{begin} {end:?} in parts of {size}");
                    assert!(held(&seen) <= 3 * LOOKED_AT, "{} bytes", held(&seen));
                }
            }
            let mut seen = seen(Kept::Answers, false);
            seen.see(text.as_bytes());
            seen.see(ANSWER.as_bytes());
            assert_eq!(seen.text.len(), after, "{begin} {end:?}");
        }
    }
}
