//! Values whose message is one thing and whose JSON is another: times, quantities, ports.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::wire::{Raw, Reader, put_bytes, put_number};
use super::{DecodeError, WireError};

// Time and MicroTime.
const SECONDS: u32 = 1;
const NANOSECONDS: u32 = 2;
// IntOrString.
const TYPE: u32 = 1;
const NUMBER: u32 = 2;
const TEXT: u32 = 3;
const IS_NUMBER: i64 = 0;
const IS_TEXT: i64 = 1;
/// The only field of several small messages.
pub const ONLY: u32 = 1;

/// The first moment that Go knows, which stands for none.
const NEVER: i64 = -62_135_596_800;

/// A time as objects show it; nothing stands for no time.
pub fn read_time(bytes: &[u8]) -> Result<Value, DecodeError> {
    Ok(match read_seconds(bytes)? {
        None => Value::Null,
        Some((seconds, _)) => shown(seconds, 0, "%Y-%m-%dT%H:%M:%SZ")?,
    })
}

/// The same with microseconds.
pub fn read_micro_time(bytes: &[u8]) -> Result<Value, DecodeError> {
    Ok(match read_seconds(bytes)? {
        None => Value::Null,
        Some((seconds, nanoseconds)) => shown(seconds, nanoseconds / 1000, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
    })
}

fn read_seconds(bytes: &[u8]) -> Result<Option<(i64, i64)>, DecodeError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanoseconds) = (0, 0);
    let mut reader = Reader::new(bytes, "Timestamp");
    while let Some((number, value)) = reader.next()? {
        match number {
            SECONDS => seconds = long(value, "Seconds")?,
            NANOSECONDS => nanoseconds = i64::from(int(value, "Nanos")?),
            _ => {}
        }
    }
    Ok((seconds != NEVER || nanoseconds != 0).then_some((seconds, nanoseconds)))
}

fn shown(seconds: i64, microseconds: i64, format: &str) -> Result<Value, DecodeError> {
    let time = seconds
        .checked_mul(1_000_000)
        .and_then(|total| total.checked_add(microseconds))
        .and_then(|total| Timestamp::from_microsecond(total).ok())
        .ok_or(DecodeError::Time(seconds))?;
    Ok(time.strftime(format).to_string().into())
}

/// Writes a time. None if the text is none.
pub fn put_time(output: &mut Vec<u8>, text: &str, with_microseconds: bool) -> Option<()> {
    let time: Timestamp = text.parse().ok()?;
    if time.as_second() != NEVER {
        put_number(output, SECONDS, time.as_second());
        let microseconds = if with_microseconds { time.subsec_microsecond() } else { 0 };
        put_number(output, NANOSECONDS, i64::from(microseconds) * 1000);
    }
    Some(())
}

/// A number or a text. What is not said is zero.
pub fn read_int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut type_, mut number, mut text) = (IS_NUMBER, 0, String::new());
    let mut reader = Reader::new(bytes, "IntOrString");
    while let Some((field, value)) = reader.next()? {
        match field {
            TYPE => type_ = long(value, "Type")?,
            NUMBER => number = int(value, "IntVal")?,
            TEXT => text = self::text(value, "StrVal")?,
            _ => {}
        }
    }
    match type_ {
        IS_NUMBER => Ok(number.into()),
        IS_TEXT => Ok(text.into()),
        _ => Err(DecodeError::IntOrString),
    }
}

/// Writes a number or a text. None if the value is neither.
pub fn put_int_or_string(output: &mut Vec<u8>, value: &Value) -> Option<()> {
    let (type_, number, text) = match value {
        Value::Null => (IS_NUMBER, 0, ""),
        Value::String(text) => (IS_TEXT, 0, text.as_str()),
        other => (IS_NUMBER, other.as_i64()?, ""),
    };
    put_number(output, TYPE, type_);
    put_number(output, NUMBER, number);
    put_bytes(output, TEXT, text.as_bytes());
    Some(())
}

/// The last value of a message's only field.
pub fn read_only<'a>(bytes: &'a [u8], message: &'a str) -> Result<Option<&'a [u8]>, DecodeError> {
    let mut found = None;
    let mut reader = Reader::new(bytes, message);
    while let Some((number, value)) = reader.next()? {
        if number == ONLY {
            found = Some(delimited(value, "Raw")?);
        }
    }
    Ok(found)
}

pub fn delimited<'a>(value: Raw<'a>, field: &str) -> Result<&'a [u8], DecodeError> {
    match value {
        Raw::Delimited(bytes) => Ok(bytes),
        other => Err(wrong(field, other)),
    }
}

/// As in Go, what is no UTF-8 is replaced when it is shown.
pub fn text(value: Raw<'_>, field: &str) -> Result<String, DecodeError> {
    Ok(String::from_utf8_lossy(delimited(value, field)?).into_owned())
}

pub fn long(value: Raw<'_>, field: &str) -> Result<i64, DecodeError> {
    match value {
        Raw::Varint(number) => Ok(i64::from_le_bytes(number.to_le_bytes())),
        other => Err(wrong(field, other)),
    }
}

/// Numbers beyond 32 bits lose the rest.
pub fn int(value: Raw<'_>, field: &str) -> Result<i32, DecodeError> {
    let [a, b, c, d, ..] = long(value, field)?.to_le_bytes();
    Ok(i32::from_le_bytes([a, b, c, d]))
}

pub fn double(value: Raw<'_>, field: &str) -> Result<f64, DecodeError> {
    match value {
        Raw::Fixed64(bits) => Ok(f64::from_bits(bits)),
        other => Err(wrong(field, other)),
    }
}

/// Go's fields begin with a capital letter.
pub fn wrong(field: &str, value: Raw<'_>) -> DecodeError {
    let mut letters = field.chars();
    let field = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    DecodeError::WireType { field, wire_type: value.wire_type() }
}

/// Every number of a packed list.
pub fn packed(bytes: &[u8]) -> impl Iterator<Item = Result<Raw<'static>, WireError>> {
    let mut reader = Reader::new(bytes, "");
    std::iter::from_fn(move || reader.next_packed().map(|number| number.map(Raw::Varint)).transpose())
}
