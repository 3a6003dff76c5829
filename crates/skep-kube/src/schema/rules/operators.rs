//! The operators of expressions.

use std::cmp::Ordering;
use std::sync::Arc;

use chrono::{DateTime, Datelike, FixedOffset, TimeDelta};
use kube_cel::cel::common::ast::operators;

use super::budget::Purse;
use super::value::{Failure, Outcome, Value, entry, member};

/// What an operator makes of its arguments. Nothing when the name is none of an operator.
pub(super) fn apply(name: &str, arguments: &[Value], purse: &mut Purse) -> Option<Outcome> {
    Some(match (name, arguments) {
        (operators::EQUALS, [one, other]) => equal(one, other, purse).map(Value::Bool),
        (operators::NOT_EQUALS, [one, other]) => equal(one, other, purse).map(|equal| (!equal).into()),
        (operators::LESS, [one, other]) => order(one, other, Ordering::is_lt),
        (operators::LESS_EQUALS, [one, other]) => order(one, other, Ordering::is_le),
        (operators::GREATER, [one, other]) => order(one, other, Ordering::is_gt),
        (operators::GREATER_EQUALS, [one, other]) => order(one, other, Ordering::is_ge),
        (operators::IN, [one, container]) => is_in(one, container, purse),
        (operators::INDEX, [of, index]) => at(of, index),
        (operators::OPT_INDEX, [of, index]) => optional_at(of, index),
        (operators::OPT_SELECT, [of, Value::Text(name)]) => optional_member(of.clone(), name),
        (operators::ADD, [one, other]) => add(one.clone(), other, purse),
        (operators::SUBSTRACT, [one, other]) => subtract(one, other),
        (operators::MULTIPLY, [one, other]) => multiply(one, other),
        (operators::DIVIDE, [one, other]) => divide(one, other),
        (operators::MODULO, [one, other]) => remainder(one, other),
        (operators::LOGICAL_NOT, [Value::Bool(flag)]) => Ok((!flag).into()),
        (operators::NEGATE, [Value::Int(number)]) => number.checked_neg().map(Value::Int).ok_or_else(overflow),
        (operators::NEGATE, [Value::Double(number)]) => Ok(Value::Double(-number)),
        (operators::LOGICAL_NOT | operators::NEGATE | operators::OPT_SELECT, _) => Err(Failure::NoOverload),
        _ => return None,
    })
}

fn overflow() -> Failure {
    Failure::told("integer overflow")
}

fn unsigned_overflow() -> Failure {
    Failure::told("unsigned integer overflow")
}

/// Comparing takes as long as the shorter one is.
fn equal(one: &Value, other: &Value, purse: &mut Purse) -> Result<bool, Failure> {
    purse.spend(one.weight().min(other.weight()))?;
    Ok(one.equals(other))
}

fn order(one: &Value, other: &Value, holds: fn(Ordering) -> bool) -> Outcome {
    match (one.compare(other), one, other) {
        (Some(order), ..) => Ok(holds(order).into()),
        (None, Value::Double(number), _) | (None, _, Value::Double(number)) if number.is_nan() => {
            Err(Failure::told("NaN values cannot be ordered"))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn is_in(one: &Value, container: &Value, purse: &mut Purse) -> Outcome {
    match container {
        Value::List(list) => {
            purse.spend(container.weight())?;
            Ok(list.contains(one).into())
        }
        Value::Map(entries) => Ok(one.key().is_some_and(|key| entry(entries, &key).is_some()).into()),
        _ => Err(Failure::NoOverload),
    }
}

/// The place that a value names in a list. Any number will do that is a whole one.
#[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number of a sensible size")]
fn place(index: &Value) -> Result<i64, Failure> {
    match index {
        Value::Int(index) => Ok(*index),
        Value::Uint(index) => i64::try_from(*index).map_err(|_| Failure::told(format!("index out of bounds: {index}"))),
        Value::Double(index) if index.fract() == 0.0 && index.abs() < 9e15 => Ok(*index as i64),
        other => Err(Failure::told(format!("unsupported index type '{}' in list", other.type_name()))),
    }
}

fn at(of: &Value, index: &Value) -> Outcome {
    match of {
        Value::List(list) => {
            let place = place(index)?;
            let item = usize::try_from(place).ok().and_then(|place| list.items.get(place));
            item.cloned().ok_or_else(|| Failure::told(format!("index out of bounds: {place}")))
        }
        Value::Map(entries) => {
            let key = index.key().ok_or(Failure::NoOverload)?;
            entry(entries, &key).cloned().ok_or_else(|| Failure::told(format!("no such key: {key}")))
        }
        Value::Optional(_) => optional_at(of, index),
        _ => match index.key() {
            Some(key) => Err(Failure::told(format!("no such key: {key}"))),
            None => Err(Failure::NoOverload),
        },
    }
}

fn optional_at(of: &Value, index: &Value) -> Outcome {
    let found = match of {
        Value::Optional(None) => None,
        Value::Optional(Some(inner)) => return optional_at(inner, index),
        Value::List(list) => usize::try_from(place(index)?).ok().and_then(|place| list.items.get(place)).cloned(),
        Value::Map(entries) => entry(entries, &index.key().ok_or(Failure::NoOverload)?).cloned(),
        _ => return Err(Failure::NoOverload),
    };
    Ok(Value::Optional(found.map(Box::new)))
}

/// A member that may not be there, of something that may not be there.
pub(super) fn optional_member(of: Value, name: &str) -> Outcome {
    match of {
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(inner)) => optional_member(*inner, name),
        Value::Map(entries) => Ok(Value::Optional(member(&entries, name).cloned().map(Box::new))),
        _ => Err(Failure::NoOverload),
    }
}

pub(super) fn add(one: Value, other: &Value, purse: &mut Purse) -> Outcome {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => one.checked_add(*other).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(one), Value::Uint(other)) => {
            one.checked_add(*other).map(Value::Uint).ok_or_else(unsigned_overflow)
        }
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one + other)),
        (Value::Text(mut one), Value::Text(text)) => {
            purse.spend(other.weight() + Value::Text(one.clone()).weight())?;
            Arc::make_mut(&mut one).push_str(text);
            Ok(Value::Text(one))
        }
        (Value::Bytes(mut one), Value::Bytes(bytes)) => {
            purse.spend(other.weight() + Value::Bytes(one.clone()).weight())?;
            Arc::make_mut(&mut one).extend_from_slice(bytes);
            Ok(Value::Bytes(one))
        }
        (Value::List(mut one), Value::List(list)) => {
            purse.spend(other.weight())?;
            Arc::make_mut(&mut one).append(list);
            Ok(Value::List(one))
        }
        (Value::Duration(one), Value::Duration(other)) => {
            one.checked_add(*other).map(Value::Duration).ok_or_else(overflow)
        }
        (Value::Timestamp(time), Value::Duration(duration)) => later(time, *duration),
        (Value::Duration(duration), Value::Timestamp(time)) => later(*time, duration),
        _ => Err(Failure::NoOverload),
    }
}

/// Times have years of up to four digits.
fn later(time: DateTime<FixedOffset>, nanoseconds: i64) -> Outcome {
    time.checked_add_signed(TimeDelta::nanoseconds(nanoseconds))
        .filter(|time| (1..=9999).contains(&time.to_utc().year()))
        .map(Value::Timestamp)
        .ok_or_else(|| Failure::told("timestamp overflow"))
}

fn subtract(one: &Value, other: &Value) -> Outcome {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => one.checked_sub(*other).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(one), Value::Uint(other)) => {
            one.checked_sub(*other).map(Value::Uint).ok_or_else(unsigned_overflow)
        }
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one - other)),
        (Value::Duration(one), Value::Duration(other)) => {
            one.checked_sub(*other).map(Value::Duration).ok_or_else(overflow)
        }
        (Value::Timestamp(time), Value::Duration(duration)) => {
            later(*time, duration.checked_neg().ok_or_else(overflow)?)
        }
        (Value::Timestamp(one), Value::Timestamp(other)) => {
            one.signed_duration_since(other).num_nanoseconds().map(Value::Duration).ok_or_else(overflow)
        }
        _ => Err(Failure::NoOverload),
    }
}

fn multiply(one: &Value, other: &Value) -> Outcome {
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => one.checked_mul(*other).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(one), Value::Uint(other)) => {
            one.checked_mul(*other).map(Value::Uint).ok_or_else(unsigned_overflow)
        }
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one * other)),
        _ => Err(Failure::NoOverload),
    }
}

fn divide(one: &Value, other: &Value) -> Outcome {
    match (one, other) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Failure::told("division by zero")),
        (Value::Int(one), Value::Int(other)) => one.checked_div(*other).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(one), Value::Uint(other)) => Ok(Value::Uint(one / other)),
        (Value::Double(one), Value::Double(other)) => Ok(Value::Double(one / other)),
        _ => Err(Failure::NoOverload),
    }
}

fn remainder(one: &Value, other: &Value) -> Outcome {
    match (one, other) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Failure::told("modulus by zero")),
        (Value::Int(one), Value::Int(other)) => one.checked_rem(*other).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(one), Value::Uint(other)) => Ok(Value::Uint(one % other)),
        _ => Err(Failure::NoOverload),
    }
}

/// A map with one more entry.
pub(super) fn insert(map: Value, key: &Value, value: &Value) -> Outcome {
    let (Value::Map(mut entries), Some(key)) = (map, key.key()) else { return Err(Failure::NoOverload) };
    let shown = key.to_string();
    if Arc::make_mut(&mut entries).insert(key, value.clone()).is_some() {
        return Err(Failure::told(format!("insert failed: key {shown} already exists")));
    }
    Ok(Value::Map(entries))
}

/// A map with the entries of another one.
pub(super) fn insert_all(map: Value, entries: &Value) -> Outcome {
    let Value::Map(more) = entries else { return Err(Failure::NoOverload) };
    more.iter().try_fold(map, |map, (key, value)| insert(map, &Value::of_key(key), value))
}
