//! `'%s has %d'.format([…])`.

use super::conversions;
use super::value::{Failure, Value};
use crate::go_text;

/// Decimals where a clause does not say how many.
const PRECISION: usize = 6;

pub(super) fn format(template: &str, arguments: &[Value]) -> Result<String, Failure> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    let mut used = 0;
    while let Some((before, clause)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = clause.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let (precision, after) = precision(clause)?;
        let verb = after.chars().next().ok_or_else(|| Failure::told("unexpected end of string"))?;
        rest = &after[verb.len_utf8()..];
        let argument = arguments.get(used).ok_or_else(|| Failure::told(format!("index {used} out of range")))?;
        used += 1;
        text.push_str(&shown(verb, precision, argument)?);
    }
    text.push_str(rest);
    Ok(text)
}

/// How many decimals a clause asks for, and what stands behind that.
fn precision(clause: &str) -> Result<(usize, &str), Failure> {
    let Some(digits) = clause.strip_prefix('.') else { return Ok((PRECISION, clause)) };
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..end].parse().ok().filter(|number| *number <= 100);
    let number = number.ok_or_else(|| Failure::told("error while parsing precision"))?;
    Ok((number, &digits[end..]))
}

fn shown(verb: char, precision: usize, value: &Value) -> Result<String, Failure> {
    let refuse = |what: &str| Failure::told(format!("error during formatting: {what}, was given {}", value.type_name()));
    match verb {
        's' => plain(value).ok_or_else(|| refuse("string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps")),
        'd' => match value {
            Value::Int(number) => Ok(number.to_string()),
            Value::Uint(number) => Ok(number.to_string()),
            Value::Double(number) if !number.is_finite() => Ok(conversions::double_text(*number)),
            _ => Err(refuse("decimal clause can only be used on integers")),
        },
        'f' | 'e' => {
            let number = double(value).ok_or_else(|| refuse(if verb == 'f' { "fixed-point clause can only be used on doubles" } else { "scientific clause can only be used on doubles" }))?;
            Ok(match verb {
                _ if !number.is_finite() => conversions::double_text(number),
                'f' => format!("{number:.precision$}"),
                _ => scientific(number, precision),
            })
        }
        'b' => match value {
            Value::Bool(flag) => Ok(i32::from(*flag).to_string()),
            _ => in_base(value, |number| format!("{number:b}")).ok_or_else(|| refuse("only ints and bools can be formatted as binary")),
        },
        'o' => in_base(value, |number| format!("{number:o}")).ok_or_else(|| refuse("octal clause can only be used on integers")),
        'x' | 'X' => {
            let lower = hexadecimal(value).ok_or_else(|| refuse("only integers, byte buffers, and strings can be formatted as hex"))?;
            Ok(if verb == 'x' { lower } else { lower.to_uppercase() })
        }
        other => Err(Failure::told(format!("could not parse formatting clause: unrecognized formatting clause {}", go_text::quoted(&other.to_string())))),
    }
}

#[expect(clippy::cast_precision_loss, reason = "what a conversion to a double does")]
fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        _ => None,
    }
}

/// `1.500000e+03`.
fn scientific(number: f64, precision: usize) -> String {
    let short = format!("{number:.precision$e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn in_base(value: &Value, write: fn(u64) -> String) -> Option<String> {
    match value {
        Value::Int(number) if *number < 0 => Some(format!("-{}", write(number.unsigned_abs()))),
        Value::Int(number) => Some(write(number.unsigned_abs())),
        Value::Uint(number) => Some(write(*number)),
        _ => None,
    }
}

fn hexadecimal(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(hex::encode(text.as_bytes())),
        Value::Bytes(bytes) => Some(hex::encode(bytes.as_slice())),
        _ => in_base(value, |number| format!("{number:x}")),
    }
}

/// A value as text, whatever it is.
fn plain(value: &Value) -> Option<String> {
    Some(match value {
        Value::Text(text) => text.to_string(),
        Value::Null => "null".to_owned(),
        Value::Type(name) => (*name).to_owned(),
        Value::List(list) => {
            let items: Option<Vec<String>> = list.items.iter().map(inner).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Map(entries) => {
            let entry = |(key, value)| Some(format!("{}: {}", inner(&Value::of_key(key))?, inner(value)?));
            let entries: Option<Vec<String>> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries?.join(", "))
        }
        Value::Optional(_) | Value::Foreign(_) => return None,
        other => match conversions::text(other)? {
            Ok(Value::Text(text)) => text.to_string(),
            _ => return None,
        },
    })
}

/// A value inside of another one.
fn inner(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(go_text::quoted(text)),
        other => plain(other),
    }
}
