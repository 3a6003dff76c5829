//! Values of one type as values of another.

use std::sync::Arc;

use chrono::{DateTime, Datelike, FixedOffset, SecondsFormat};

use super::super::duration;
use super::value::{Failure, Outcome, Value};
use crate::go_text;

/// What the function of a type makes of a value. Nothing when there is no such function, or it is not ours.
pub(super) fn call(name: &str, arguments: &[Value]) -> Option<Outcome> {
    let [value] = arguments else { return None };
    Some(match name {
        "bool" => truth(value),
        "bytes" => bytes(value),
        "double" => double(value),
        "duration" => to_duration(value),
        "dyn" => Ok(value.clone()),
        "int" => int(value),
        "string" => return text(value),
        "timestamp" => timestamp(value),
        "type" => Ok(Value::Type(value.type_name())),
        "uint" => uint(value),
        _ => return None,
    })
}

fn unreadable(wanted: &str) -> Failure {
    Failure::told(format!("type conversion error from 'string' to '{wanted}'"))
}

fn truth(value: &Value) -> Outcome {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::Text(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true.into()),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false.into()),
            _ => Err(unreadable("bool")),
        },
        _ => Err(Failure::NoOverload),
    }
}

fn bytes(value: &Value) -> Outcome {
    match value {
        Value::Bytes(_) => Ok(value.clone()),
        Value::Text(text) => Ok(Value::Bytes(Arc::new(text.as_bytes().to_vec()))),
        _ => Err(Failure::NoOverload),
    }
}

#[expect(clippy::cast_precision_loss, reason = "what a conversion to a double does")]
fn double(value: &Value) -> Outcome {
    match value {
        Value::Double(_) => Ok(value.clone()),
        Value::Int(number) => Ok(Value::Double(*number as f64)),
        Value::Uint(number) => Ok(Value::Double(*number as f64)),
        Value::Text(text) => text.parse().map(Value::Double).map_err(|_| unreadable("double")),
        _ => Err(Failure::NoOverload),
    }
}

/// The first double beyond what fits into an `i64`, and into a `u64`.
const INT_END: f64 = 9_223_372_036_854_775_808.0;
const UINT_END: f64 = 18_446_744_073_709_551_616.0;

#[expect(clippy::cast_possible_truncation, reason = "what a conversion of a double does; its range is checked")]
fn int(value: &Value) -> Outcome {
    let overflow = || Failure::told("integer overflow");
    match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Uint(number) => i64::try_from(*number).map(Value::Int).map_err(|_| overflow()),
        Value::Double(number) if *number > -INT_END && *number < INT_END => Ok(Value::Int(*number as i64)),
        Value::Double(_) => Err(overflow()),
        Value::Text(text) => text.parse().map(Value::Int).map_err(|_| unreadable("int")),
        Value::Timestamp(time) => Ok(Value::Int(time.timestamp())),
        Value::Duration(nanoseconds) => Ok(Value::Int(*nanoseconds)),
        _ => Err(Failure::NoOverload),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what a conversion of a double does; its range is checked"
)]
fn uint(value: &Value) -> Outcome {
    let overflow = || Failure::told("unsigned integer overflow");
    match value {
        Value::Uint(_) => Ok(value.clone()),
        Value::Int(number) => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(number) if *number >= 0.0 && *number < UINT_END => Ok(Value::Uint(*number as u64)),
        Value::Double(_) => Err(overflow()),
        Value::Text(text) => text.parse().map(Value::Uint).map_err(|_| unreadable("uint")),
        _ => Err(Failure::NoOverload),
    }
}

fn to_duration(value: &Value) -> Outcome {
    match value {
        Value::Duration(_) => Ok(value.clone()),
        // It is declared, and fails whatever the number.
        Value::Int(_) => Err(Failure::told("type conversion error from 'int' to 'google.protobuf.Duration'")),
        Value::Text(text) => {
            duration::parse(text).map(Value::Duration).ok_or_else(|| unreadable("google.protobuf.Duration"))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn timestamp(value: &Value) -> Outcome {
    let overflow = || Failure::told("timestamp overflow");
    let time = match value {
        Value::Timestamp(time) => *time,
        Value::Int(seconds) => DateTime::from_timestamp(*seconds, 0).ok_or_else(overflow)?.fixed_offset(),
        Value::Text(text) => DateTime::parse_from_rfc3339(text).map_err(|_| unreadable("google.protobuf.Timestamp"))?,
        _ => return Err(Failure::NoOverload),
    };
    if (1..=9999).contains(&time.to_utc().year()) { Ok(Value::Timestamp(time)) } else { Err(overflow()) }
}

/// A value as text. Nothing for values that kube-cel knows better.
pub(super) fn text(value: &Value) -> Option<Outcome> {
    Some(Ok(match value {
        Value::Text(_) => value.clone(),
        Value::Bool(flag) => flag.to_string().into(),
        Value::Int(number) => number.to_string().into(),
        Value::Uint(number) => number.to_string().into(),
        Value::Double(number) => double_text(*number).into(),
        Value::Bytes(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => text.into(),
            Err(_) => return Some(Err(Failure::told("invalid UTF-8 in bytes, cannot convert to string"))),
        },
        Value::Duration(nanoseconds) => format!("{}s", seconds(*nanoseconds)).into(),
        Value::Timestamp(time) => time_text(time).into(),
        Value::Foreign(_) => return None,
        _ => return Some(Err(Failure::NoOverload)),
    }))
}

/// As Go writes numbers, with its own names for those that are none.
pub(super) fn double_text(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        number => go_text::float(number),
    }
}

/// Seconds with as many decimals as it takes.
#[expect(clippy::cast_precision_loss, reason = "the server goes by a double, too")]
pub(super) fn seconds(nanoseconds: i64) -> String {
    let (whole, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    (whole as f64 + rest as f64 / 1e9).to_string()
}

/// With as many decimals of a second as it takes.
pub(super) fn time_text(time: &DateTime<FixedOffset>) -> String {
    let full = time.to_rfc3339_opts(SecondsFormat::Nanos, true);
    // `2026-01-01T00:00:00`, nine decimals, the offset.
    let Some((seconds, rest)) = full.split_once('.') else { return full };
    let (decimals, offset) = rest.split_at(rest.len().min(9));
    match decimals.trim_end_matches('0') {
        "" => format!("{seconds}{offset}"),
        decimals => format!("{seconds}.{decimals}{offset}"),
    }
}
