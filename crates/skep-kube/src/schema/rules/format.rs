//! `'%s has %d'.format([…])`.

use super::conversions;
use super::kind::Kind;
use super::value::{Failure, Value};
use crate::go_text;

/// Decimals where a clause does not say how many, and as many as it can ask for.
const PRECISION: usize = 6;
const MOST_PRECISION: usize = 10_000;

/// A part of a template.
enum Part<'a> {
    Text(&'a str),
    Clause { verb: char, precision: usize },
}

pub(super) fn format(template: &str, arguments: &[Value]) -> Result<String, Failure> {
    let mut text = String::with_capacity(template.len());
    let mut used = 0;
    for part in parts(template).map_err(Failure::Told)? {
        match part {
            Part::Text(plain) => text.push_str(plain),
            Part::Clause { verb, precision } => {
                let argument = arguments.get(used).ok_or_else(|| Failure::Told(out_of_range(used)))?;
                let given = || Failure::Told(refusal(verb, argument.type_name()));
                text.push_str(&shown(verb, precision, argument).ok_or_else(given)?);
                used += 1;
            }
        }
    }
    Ok(text)
}

/// What can be said about a template before there are values: what is wrong, and with which of them.
pub(super) fn check(template: &str, kinds: &[Kind]) -> Result<(), (Option<usize>, String)> {
    let mut used = 0;
    for part in parts(template).map_err(|problem| (None, problem))? {
        let Part::Clause { verb, .. } = part else { continue };
        let kind = kinds.get(used).ok_or_else(|| (None, out_of_range(used)))?;
        if !takes(verb, kind) {
            // Without what it is a list or a map of.
            let name = kind.name();
            return Err((Some(used), refusal(verb, name.split('(').next().unwrap_or_default())));
        }
        used += 1;
    }
    Ok(())
}

fn parts(template: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((before, clause)) = rest.split_once('%') {
        parts.push(Part::Text(before));
        if let Some(after) = clause.strip_prefix('%') {
            parts.push(Part::Text("%"));
            rest = after;
            continue;
        }
        let (precision, after) = precision(clause)?;
        let verb = after.chars().next().ok_or("unexpected end of string")?;
        if !"sdfebxXo".contains(verb) {
            let verb = go_text::quoted(&verb.to_string());
            return Err(format!("could not parse formatting clause: unrecognized formatting clause {verb}"));
        }
        parts.push(Part::Clause { verb, precision });
        rest = &after[verb.len_utf8()..];
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

/// How many decimals a clause asks for, and what stands behind that.
fn precision(clause: &str) -> Result<(usize, &str), String> {
    let Some(digits) = clause.strip_prefix('.') else { return Ok((PRECISION, clause)) };
    let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
    let number = digits[..end].parse().ok().filter(|number| *number <= MOST_PRECISION);
    let number = number.ok_or_else(|| "could not parse formatting clause: error while parsing precision".to_owned())?;
    Ok((number, &digits[end..]))
}

fn out_of_range(index: usize) -> String {
    format!("index {index} out of range")
}

fn refusal(verb: char, given: &str) -> String {
    let what = match verb {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps"
        }
    };
    format!("error during formatting: {what}, was given {given}")
}

/// Whether a clause may take a value of a type. Texts can name what is no number.
fn takes(verb: char, kind: &Kind) -> bool {
    let any_of = |names: &[&str]| names.iter().any(|name| kind.may_be(name));
    match verb {
        'd' | 'o' => any_of(&["int", "uint"]),
        'f' | 'e' => any_of(&["double", "string"]),
        'b' => any_of(&["bool", "int", "uint"]),
        'x' | 'X' => any_of(&["bytes", "int", "string", "uint"]),
        _ => match kind {
            Kind::Object(..) | Kind::Metadata | Kind::Optional(_) => false,
            Kind::Named(name) => !name.contains('.'),
            _ => true,
        },
    }
}

fn shown(verb: char, precision: usize, value: &Value) -> Option<String> {
    match (verb, value) {
        ('s', _) => plain(value),
        ('d', Value::Int(number)) => Some(number.to_string()),
        ('d', Value::Uint(number)) => Some(number.to_string()),
        ('f', _) => double(value).map(|number| fixed(number, precision)),
        ('e', _) => double(value).map(scientific),
        ('b', Value::Bool(flag)) => Some(i32::from(*flag).to_string()),
        ('b', _) => in_base(value, |number| format!("{number:b}")),
        ('o', _) => in_base(value, |number| format!("{number:o}")),
        ('x', _) => hexadecimal(value),
        ('X', _) => hexadecimal(value).map(|digits| digits.to_uppercase()),
        _ => None,
    }
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::Text(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// What is no number, as people write it.
fn odd(number: f64) -> Option<&'static str> {
    match number {
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        number if number.is_nan() => Some("NaN"),
        _ => None,
    }
}

/// `1,234.500000`.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(odd) = odd(number) {
        return odd.to_owned();
    }
    let plain = format!("{number:.precision$}");
    let (whole, decimals) = plain.split_once('.').map_or((plain.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let digits = whole.trim_start_matches('-');
    let mut text = whole[..whole.len() - digits.len()].to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    decimals.map_or(text.clone(), |decimals| format!("{text}.{decimals}"))
}

/// `1.500000×10⁰³`, whatever precision was asked for.
fn scientific(number: f64) -> String {
    if let Some(odd) = odd(number) {
        return odd.to_owned();
    }
    let short = format!("{number:.PRECISION$e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |exponent| ("⁻", exponent));
    let raised: String = format!("{exponent:0>2}").chars().map(raised).collect();
    format!("{digits}×10{sign}{raised}")
}

fn raised(digit: char) -> char {
    let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    digit.to_digit(10).and_then(|digit| digits.get(digit as usize).copied()).unwrap_or(digit)
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
            let entry = |(key, value)| Some(format!("{}:{}", inner(&Value::of_key(key))?, inner(value)?));
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

/// A value inside of another one, as an expression would write it.
fn inner(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(go_text::quoted(text)),
        Value::Bytes(_) => Some(format!("b{}", go_text::quoted(&plain(value)?))),
        Value::Duration(_) => Some(format!("duration(\"{}\")", plain(value)?)),
        Value::Timestamp(_) => Some(format!("timestamp(\"{}\")", plain(value)?)),
        Value::Double(number) if number.is_finite() => Some(format!("{number:.PRECISION$}")),
        other => plain(other),
    }
}
