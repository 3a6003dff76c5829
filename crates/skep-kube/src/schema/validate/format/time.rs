//! Dates, times and durations.

use super::super::super::duration;

/// `2026-11-15`.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(bytes, 0..4), number(bytes, 5..7), number(bytes, 8..10)) else {
        return false;
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// `2026-11-15T09:00:00Z`, as Go reads it: fractions may follow a comma, and offsets may reach 24 hours.
pub(super) fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    if !text.is_ascii() || bytes.len() < 20 || !is_date(&text[..10]) || !matches!(bytes[10], b'T' | b't') {
        return false;
    }
    let clock = number(bytes, 11..13).is_some_and(|hour| hour < 24)
        && bytes[13] == b':'
        && number(bytes, 14..16).is_some_and(|minute| minute < 60)
        && bytes[16] == b':'
        && number(bytes, 17..19).is_some_and(|second| second < 60);
    let mut zone = &text[19..];
    if let Some(rest) = zone.strip_prefix(['.', ',']) {
        zone = rest.trim_start_matches(|character: char| character.is_ascii_digit());
        if zone.len() == rest.len() {
            return false;
        }
    }
    clock && is_zone(zone)
}

fn is_zone(zone: &str) -> bool {
    let bytes = zone.as_bytes();
    matches!(zone, "Z" | "z")
        || (bytes.len() == 6
            && matches!(bytes[0], b'+' | b'-')
            && number(bytes, 1..3).is_some_and(|hours| hours <= 24)
            && bytes[3] == b':'
            && number(bytes, 4..6).is_some_and(|minutes| minutes <= 60))
}

fn number(bytes: &[u8], range: std::ops::Range<usize>) -> Option<u32> {
    bytes
        .get(range)?
        .iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u32::from(byte - b'0')))
}

/// The names of units in one word. The last of each line may be longer: `seconds`.
const UNITS: [&[&str]; 8] = [
    &["ns", "nano"],
    &["us", "µs", "micro"],
    &["ms", "milli"],
    &["s", "sec"],
    &["m", "min"],
    &["h", "hr", "hour"],
    &["d", "day"],
    &["w", "wk", "week"],
];

/// What Go calls a duration, or any text in which a number is followed by a unit: `2 weeks`.
pub(super) fn is_duration(text: &str) -> bool {
    if duration::parse(text).is_some() {
        return true;
    }
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        let after = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        let is_letter = |character: char| character.is_ascii_alphabetic() || character == 'µ';
        let end = after.find(|character: char| !is_letter(character)).unwrap_or(after.len());
        let unit = &after[..end];
        if !unit.is_empty() {
            // A number that does not fit spoils the whole.
            if digits.parse::<i64>().is_err() {
                return false;
            }
            found |= is_unit(&unit.to_lowercase());
        }
        rest = &after[end..];
    }
    found
}

fn is_unit(unit: &str) -> bool {
    UNITS.iter().any(|names| names.contains(&unit) || names.last().is_some_and(|longest| unit.starts_with(longest)))
}
