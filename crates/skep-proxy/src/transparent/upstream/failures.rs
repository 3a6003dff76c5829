//! What the log tells of requests that get no answer: enough to look for the reason, however many they are.

use std::error::Error;

use http::Uri;

use super::Failed;
use crate::fetch;
use crate::fetch::resolve::Closed;
use crate::lapses::Lapses;

/// Requests that one server has not answered.
#[derive(Debug)]
pub(super) struct Failures {
    /// The address of the server.
    origin: String,
    unreached: Lapses,
    unanswered: Lapses,
    unasked: Lapses,
}

impl Failures {
    pub(super) fn of(origin: String) -> Self {
        Self { origin, unreached: Lapses::default(), unanswered: Lapses::default(), unasked: Lapses::default() }
    }

    /// A request got no answer. Tells why, and who was asked.
    pub(super) fn tell(&self, error: &(dyn Error + 'static), is_unreached: bool, asked: &Uri) -> Failed {
        if let Some(closed) = Closed::within(error) {
            return self.tell_closed(closed);
        }
        let lapses = if is_unreached { &self.unreached } else { &self.unanswered };
        if let Some(times) = lapses.failed() {
            let (address, error) = (fetch::without_query(asked), fetch::cause(error));
            if is_unreached {
                tracing::warn!(address, error, times, "the MCP server cannot be reached");
            } else {
                tracing::warn!(address, error, times, "the MCP server has not answered a request");
            }
        }
        Failed { is_unreached }
    }

    /// A request is not sent to where it would have to go.
    pub(super) fn tell_closed(&self, closed: &Closed) -> Failed {
        if let Some(times) = self.unasked.failed() {
            let hint = if closed.is_barred {
                "nobody is asked at link-local, metadata and reserved addresses, whatever is allowed"
            } else {
                "a remote server there needs allowPrivateEndpoint"
            };
            tracing::warn!(times, "the MCP server is not asked: {closed}; hint: {hint}");
        }
        Failed { is_unreached: true }
    }

    /// A request was answered.
    pub(super) fn end(&self) {
        // Each of them is over with that, and it is told once.
        let over = [&self.unreached, &self.unanswered, &self.unasked].map(Lapses::is_over);
        if over.contains(&true) {
            tracing::info!(address = self.origin, "the MCP server answers again");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn each_reason_is_told_once_in_a_while_and_their_end_once() {
        let (failures, asked) = (Failures::of("http://a".to_owned()), Uri::from_static("http://a/mcp?key=hunter"));
        let error = io::Error::from(io::ErrorKind::ConnectionRefused);
        for is_unreached in [true, false, true, false] {
            assert_eq!(failures.tell(&error, is_unreached, &asked).is_unreached, is_unreached);
        }
        // What was told a moment ago is only counted.
        assert!(failures.unreached.failed().is_none() && failures.unanswered.failed().is_none());
        failures.end();
        assert!(!failures.unreached.is_over() && !failures.unanswered.is_over(), "the end was told");
    }
}
