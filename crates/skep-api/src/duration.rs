//! Durations as the API writes them: Go's notation, such as `1h30m`, `1.5s` or `250ms`.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The pattern of a duration in the schemas: no sign, at least one number with a unit.
pub const PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

const NANOSECOND: u64 = 1;
const MICROSECOND: u64 = 1_000 * NANOSECOND;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// What is wrong with a duration text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("duration {text:?} is not a sequence of numbers with units; write it like 90s, 1m30s or 250ms")]
    Malformed { text: String },
    #[error("duration {text:?} is negative")]
    Negative { text: String },
    #[error("duration {text:?} is longer than 292 years")]
    TooLong { text: String },
}

/// A duration as it stands in a document, kept as written. [`DurationText::parse`] gives it meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(pub String);

impl DurationText {
    pub fn parse(&self) -> Result<Duration, DurationError> {
        parse(&self.0)
    }
}

impl From<Duration> for DurationText {
    fn from(duration: Duration) -> Self {
        Self(format(duration))
    }
}

impl From<&str> for DurationText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "DurationText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

/// Reads Go's notation. A sign is part of the grammar; a negative duration is refused all the same, because
/// nothing in the API can be negative.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed { text: text.to_owned() };
    let too_long = || DurationError::TooLong { text: text.to_owned() };
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(malformed());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number_length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(malformed)?;
        let (number, tail) = rest.split_at(number_length);
        let unit_length = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        let scale = unit_in_nanoseconds(unit).ok_or_else(malformed)?;
        let number = decimal_parts(number).ok_or_else(malformed)?;
        let nanoseconds = scaled(number, scale).ok_or_else(too_long)?;
        total = total.checked_add(nanoseconds).filter(|sum| i64::try_from(*sum).is_ok()).ok_or_else(too_long)?;
        rest = tail;
    }
    if negative && total > 0 {
        return Err(DurationError::Negative { text: text.to_owned() });
    }
    Ok(Duration::from_nanos(total))
}

fn unit_in_nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => NANOSECOND,
        // Both code points that look like mu: the micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

/// Whole part and fraction of a decimal number; either may be empty, but not both.
fn decimal_parts(number: &str) -> Option<(&str, &str)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    (has_digits && !fraction.contains('.')).then_some((whole, fraction))
}

/// The number times `scale`, digits below one nanosecond cut off. `None` when it is too large.
fn scaled((whole, fraction): (&str, &str), scale: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanoseconds = whole.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        nanoseconds = nanoseconds.checked_add(place * u64::from(digit - b'0'))?;
    }
    Some(nanoseconds)
}

/// Writes a duration the way Go prints it: `1m0s`, `1h30m0s`, `1.5s`, `250ms`, `0s`.
pub fn format(duration: Duration) -> String {
    let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    if nanoseconds < SECOND {
        let (unit, scale) = match nanoseconds {
            n if n < MICROSECOND => ("ns", NANOSECOND),
            n if n < MILLISECOND => ("\u{b5}s", MICROSECOND),
            _ => ("ms", MILLISECOND),
        };
        return format!("{}{unit}", decimal(nanoseconds, scale));
    }
    let mut text = String::new();
    let (hours, minutes, seconds) = (nanoseconds / HOUR, nanoseconds % HOUR / MINUTE, nanoseconds % MINUTE);
    // Writing to a String cannot fail.
    if hours > 0 {
        let _ = write!(text, "{hours}h");
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(text, "{minutes}m");
    }
    let _ = write!(text, "{}s", decimal(seconds, SECOND));
    text
}

/// `value / scale` with as many decimals as needed and no more.
fn decimal(value: u64, scale: u64) -> String {
    let (whole, remainder) = (value / scale, value % scale);
    if remainder == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    let fraction = format!("{remainder:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_go_prints() {
        for (duration, text) in [
            (Duration::ZERO, "0s"),
            (Duration::from_nanos(7), "7ns"),
            (Duration::from_nanos(1_500), "1.5µs"),
            (Duration::from_millis(250), "250ms"),
            (Duration::from_millis(1_500), "1.5s"),
            (Duration::from_mins(1), "1m0s"),
            (Duration::from_mins(90), "1h30m0s"),
            (Duration::from_hours(1), "1h0m0s"),
            (Duration::from_nanos(3_600_000_000_001), "1h0m0.000000001s"),
        ] {
            assert_eq!(format(duration), text);
            assert_eq!(parse(text), Ok(duration), "{text}");
        }
    }

    #[test]
    fn reads_what_go_reads() {
        for (text, seconds) in
            [("1h30m", 5400.0), ("1.5h", 5400.0), ("+2m", 120.0), ("0", 0.0), (".5s", 0.5), ("1.s", 1.0)]
        {
            assert_eq!(parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert_eq!(parse("3us"), parse("3\u{3bc}s"));
    }

    #[test]
    fn refuses_what_go_refuses_and_negatives() {
        for text in ["", "-", "s", ".", ".s", "1", "1x", "1.2.3s", "1 s", "one", "1s2"] {
            assert!(matches!(parse(text), Err(DurationError::Malformed { .. })), "{text:?}");
        }
        assert!(matches!(parse("-1s"), Err(DurationError::Negative { .. })));
        assert!(matches!(parse("9999999999h"), Err(DurationError::TooLong { .. })));
        assert!(matches!(parse("99999999999999999999999s"), Err(DurationError::TooLong { .. })));
    }
}
