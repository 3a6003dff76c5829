//! Durations as Go reads them: `1h30m`, `-1.5s`, `10µs`.

use crate::go_text::quoted;

/// Nanoseconds, or nothing when the text is no duration or one that does not fit.
pub(crate) fn parse(text: &str) -> Option<i64> {
    read(text).ok()
}

/// Nanoseconds, or what Go has against the text.
pub(crate) fn read(text: &str) -> Result<i64, String> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    let invalid = || format!("time: invalid duration {}", quoted(text));
    let total = sum(rest).map_err(|unit| match unit {
        None => invalid(),
        Some("") => format!("time: missing unit in duration {}", quoted(text)),
        Some(unit) => format!("time: unknown unit {} in duration {}", quoted(unit), quoted(text)),
    })?;
    if negative && total == 1 << 63 {
        return Ok(i64::MIN);
    }
    let total = i64::try_from(total).map_err(|_| invalid())?;
    Ok(if negative { -total } else { total })
}

/// The parts together, or the unit that is none, if that is the reason why there is no sum.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "as Go does")]
fn sum(mut rest: &str) -> Result<u64, Option<&str>> {
    if rest.is_empty() {
        return Err(None);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = split_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => split_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(None);
        }
        let end = after.find(|character: char| character == '.' || character.is_ascii_digit()).unwrap_or(after.len());
        let unit = unit(&after[..end]).ok_or(Some(&after[..end]))?;
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| None)? };
        let mut nanoseconds = whole.checked_mul(unit).ok_or(None)?;
        if !fraction.is_empty() {
            // Digits beyond what a double holds do not change the result.
            let digits = &fraction[..fraction.len().min(18)];
            let scale = 10_f64.powi(i32::try_from(digits.len()).map_err(|_| None)?);
            let value = digits.parse::<u64>().map_err(|_| None)? as f64 * (unit as f64 / scale);
            nanoseconds = nanoseconds.checked_add(value as u64).ok_or(None)?;
        }
        total = total.checked_add(nanoseconds).ok_or(None)?;
        rest = &after[end..];
    }
    Ok(total)
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()))
}

const fn unit(name: &str) -> Option<u64> {
    Some(match name.as_bytes() {
        b"ns" => 1,
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"m" => 60_000_000_000,
        b"h" => 3_600_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("+5s", Some(5_000_000_000)),
            ("10µs", Some(10_000)),
            ("10μs", Some(10_000)),
            ("0", Some(0)),
            (".5ms", Some(500_000)),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("9223372036854775808ns", None),
            ("2562048h", None),
            ("1", None),
            ("", None),
            ("1d", None),
            ("1h ", None),
            (".s", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
