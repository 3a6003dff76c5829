//! What is told of a server that does not talk as it should. It may do so all the time, so that it is told once and then now
//! and then.

use std::time::Duration;

use bytes::Bytes;
use skep_mcp::lines::object_in;
use skep_mcp::{ReadError, json, translate};

use crate::lapses::Lapses;

/// So many characters of a line say what it is.
const SHOWN: usize = 80;

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Oddities {
    no_messages: Lapses,
    refusals: Lapses,
    late: Lapses,
    late_handshakes: Lapses,
}

impl Oddities {
    /// It wrote a line that is no message, for this reason.
    pub(super) fn wrote(&self, line: &Bytes, error: &ReadError) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if let Some(code) = refusal(line) {
            if let Some(times) = self.refusals.failed() {
                let begins = shown(line);
                tracing::warn!(times, code, ?begins, "the MCP server refused a message without saying which");
            }
        } else if let Some(times) = self.no_messages.failed() {
            tracing::warn!(times, %error, begins = ?shown(line), "the MCP server wrote a line that is no message");
        }
    }

    /// It has not answered so many requests in time, and so many handshakes.
    pub(super) fn kept_silent(&self, requests: usize, handshakes: usize, patience: Duration) {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        if let Some(times) = self.late_handshakes.failed_often(count(handshakes)) {
            tracing::warn!(times, ?patience, "the MCP server has not answered the handshake in time");
        }
        if let Some(times) = self.late.failed_often(count(requests)) {
            tracing::warn!(times, ?patience, "the MCP server has not answered requests in time");
        }
    }
}

/// The code of an error that says about no request in particular what is wrong: it has no id.
fn refusal(line: &Bytes) -> Option<i64> {
    let object = object_in(line).unwrap_or_else(|| line.clone());
    let text = std::str::from_utf8(&object).ok()?;
    let find = |name| json::find(text, &[name]).ok().flatten();
    let has_id = find("id").is_some_and(|id| id.of(text) != "null");
    let error = find("error").filter(|_| !has_id)?.of(text);
    error.starts_with('{').then(|| translate::error_code(error))
}

/// The beginning of a line.
fn shown(line: &[u8]) -> String {
    // No character has more bytes.
    let start = &line[..line.len().min(4 * SHOWN)];
    String::from_utf8_lossy(start).chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_names_no_request_is_found_and_nothing_else() {
        let of = |line: &'static str| refusal(&Bytes::from_static(line.as_bytes()));
        assert_eq!(of(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#), Some(-32700));
        assert_eq!(of(r#"INFO {"error":{"code":-32600,"message":"no"},"jsonrpc":"2.0"}"#), Some(-32600));
        for other in [r#"{"jsonrpc":"2.0","id":[1],"error":{"code":1}}"#, r#"{"error":"no"}"#, "{}", "no", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn the_beginning_of_a_line_has_so_many_characters() {
        assert_eq!(shown("ü".repeat(100).as_bytes()), "ü".repeat(SHOWN));
        assert_eq!(shown(&[0xff; 1000]).chars().count(), SHOWN);
        assert_eq!(shown(b"\x1b[31m"), "\x1b[31m");
    }
}
