//! Values as Go programs print them: the real server is one, and its texts are what clients compare.

use std::fmt::Write;

use serde_json::{Number, Value};

/// A string in double quotes, with what cannot be printed escaped.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            other => push_escaped(&mut quoted, other),
        }
    }
    quoted.push('"');
    quoted
}

/// A list of strings: `["a" "b"]`.
pub fn quoted_list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(" "))
}

/// One character in single quotes.
pub fn quoted_character(character: char) -> String {
    let mut quoted = String::from("'");
    match character {
        '\'' => quoted.push_str("\\'"),
        other => push_escaped(&mut quoted, other),
    }
    quoted.push('\'');
    quoted
}

fn push_escaped(text: &mut String, character: char) {
    let code = u32::from(character);
    // Writing to a string cannot fail.
    let _ = match character {
        '\\' => text.write_str("\\\\"),
        '\u{7}' => text.write_str("\\a"),
        '\u{8}' => text.write_str("\\b"),
        '\u{c}' => text.write_str("\\f"),
        '\n' => text.write_str("\\n"),
        '\r' => text.write_str("\\r"),
        '\t' => text.write_str("\\t"),
        '\u{b}' => text.write_str("\\v"),
        '\0'..'\x20' | '\x7f' => write!(text, "\\x{code:02x}"),
        '\u{ad}' => text.write_str("\\u00ad"),
        _ if is_printable(character) => text.write_char(character),
        _ if code < 0x1_0000 => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
}

/// Rust and Go agree on what is printable but for spaces other than the common one.
fn is_printable(character: char) -> bool {
    let plain = matches!(character, ' ' | '\'' | '"');
    plain || (!character.is_whitespace() && character.escape_debug().len() == 1)
}

/// A floating-point number: as short as possible, with an exponent from a million on.
pub fn float(number: f64) -> String {
    let exponential = format!("{number:e}");
    let Some((digits, exponent)) = exponential.split_once('e') else {
        return exponential;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        return with_exponent(digits, exponent);
    }
    format!("{number}")
}

/// A number: whole ones as they are.
pub fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => float(value),
        _ => number.to_string(),
    }
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// What a decoder calls a JSON value.
pub const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Where a text stops being base64; nothing when all of it is. Line ends do not count.
pub fn illegal_base64(text: &str) -> Option<usize> {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let mut letters = text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    loop {
        for place in 0..4 {
            match letters.next() {
                None if place == 0 => return None,
                None => return Some(text.len() - place),
                Some((_, byte)) if is_digit(byte) => {}
                Some((at, b'=')) if place == 2 => {
                    return match letters.next() {
                        None => Some(text.len()),
                        Some((_, b'=')) => letters.next().map(|(at, _)| at),
                        Some(_) => Some(at),
                    };
                }
                Some((_, b'=')) if place == 3 => return letters.next().map(|(at, _)| at),
                Some((at, _)) => return Some(at),
            }
        }
    }
}

/// JSON, with the characters escaped that could end a script element.
pub fn json(value: &Value) -> String {
    let plain = value.to_string();
    let mut escaped = String::with_capacity(plain.len());
    for character in plain.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Why a text is no number, in the words of Go's `strconv`.
pub fn number_problem(error: &std::num::ParseIntError) -> &'static str {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    if matches!(error.kind(), PosOverflow | NegOverflow) { "value out of range" } else { "invalid syntax" }
}

/// Seconds as Go counts them, in nanoseconds: what does not fit begins anew at the other end.
pub fn wrapped_nanoseconds(seconds: i64) -> i64 {
    seconds.wrapping_mul(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        assert_eq!(quoted("bo\"b\\é\n\u{1}\u{85}"), r#""bo\"b\\é\n\x01\u0085""#);
        assert_eq!(quoted_list(["a", ""]), r#"["a" ""]"#);
    }

    /// The offsets are Go's.
    #[test]
    fn base64_ends_where_go_says() {
        for text in ["", "YQ==", "YW I=".replace(' ', "").as_str(), "YWJj\nYQ==", "YWJj"] {
            assert_eq!(illegal_base64(text), None, "{text}");
        }
        for (text, at) in [
            ("***", 0),
            ("not base64", 3),
            ("YQ=", 3),
            ("YQ==x", 4),
            ("YQ=x", 2),
            ("YWJ", 0),
            ("YWJjYQ", 4),
            ("Y===", 1),
        ] {
            assert_eq!(illegal_base64(text), Some(at), "{text}");
        }
    }

    #[test]
    fn texts_are_those_of_the_real_server() {
        assert_eq!(quoted("a\u{7}\u{200b}é\"\\\n'🐝\u{7f}"), r#""a\a\u200bé\"\\\n'🐝\x7f""#);
        assert_eq!(quoted_character('\''), r"'\''");
        assert_eq!(quoted_character('"'), "'\"'");
        assert_eq!(float(1_000_003.0), "1.000003e+06");
        assert_eq!(float(9.223_372_036_854_776e18), "9.223372036854776e+18");
        assert_eq!(float(2.5), "2.5");
        assert_eq!(float(1e-7), "1e-07");
        assert_eq!(json(&serde_json::json!({ "a": "<&>" })), r#"{"a":"\u003c\u0026\u003e"}"#);
    }
}
