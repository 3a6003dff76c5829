//! Looks at an answer for as long as its record needs.

use http::StatusCode;

use super::event::Pending;
use super::settings::AuditSettings;
use crate::answer::Answer;
use crate::body::Body;
use crate::middleware::watch::{self, Watcher};

/// So much of an answer is looked at for errors.
const LOOKED_AT: usize = 1 << 20;

/// The answer, with its end recorded.
pub(super) fn watched(answer: Answer, pending: Pending, settings: &AuditSettings) -> Answer {
    let looks = settings.has_answers || (settings.detects_errors && answer.status().is_success());
    if let Body::Full(text) = answer.body() {
        pending.end(answer.status(), text, text.len());
        return answer;
    }
    if !looks {
        pending.end(answer.status(), &[], 0);
        return answer;
    }
    let status = answer.status();
    answer.map(|body| watch::watched(body, Seen { status, text: Vec::new(), size: 0, pending: Some(pending) }))
}

/// What was seen of an answer.
struct Seen {
    status: StatusCode,
    text: Vec<u8>,
    size: usize,
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

/// A client that goes away ends it, too.
impl Drop for Seen {
    fn drop(&mut self) {
        self.end();
    }
}
