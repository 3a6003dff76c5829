//! One line of a log file: `2026-01-02T03:04:05.000000006Z stdout F text`.

use k8s_openapi::jiff::Timestamp;

/// Longer lines are written in parts.
pub(super) const LONGEST: usize = 16 * 1024;

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Output,
    Error,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::Output => "stdout",
            Self::Error => "stderr",
        }
    }
}

/// Writes the line into `buffer`. `text` has no line end; a part is one that goes on in the next line.
pub(super) fn write(buffer: &mut Vec<u8>, time: Timestamp, source: Source, text: &[u8], part: bool) {
    let tag = if part { "P" } else { "F" };
    buffer.extend_from_slice(format!("{time:.9} {} {tag} ", source.name()).as_bytes());
    buffer.extend_from_slice(text);
    buffer.push(b'\n');
}

/// A line that was read back.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) time: &'a str,
    pub(super) part: bool,
    pub(super) text: &'a [u8],
}

/// Takes a line apart; `None` for one that was cut short by a crash.
pub(super) fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut fields = line.splitn(4, |byte| *byte == b' ');
    let time = std::str::from_utf8(fields.next()?).ok()?;
    let _source = fields.next()?;
    let part = fields.next()? == b"P";
    Some(Line { time, part, text: fields.next()? })
}
