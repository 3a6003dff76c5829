//! From JSON to the bytes of a message.
//!
//! As the real server writes it: members in the order of their numbers, and every one that cannot be absent, zero or not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::EncodeError;
use super::forms::{self, ONLY};
use super::messages::{Field, Kind, Message, Messages, Type};
use super::wire::{put_bytes, put_double, put_nested, put_number};

const KEY: u32 = 1;
const VALUE: u32 = 2;

/// Appends the message of an object. Nothing at all counts as an object without members.
pub fn object(message: &Message, object: &Value, output: &mut Vec<u8>) -> Result<(), EncodeError> {
    if !object.is_object() && !object.is_null() {
        return Err(misfit(message.name, object));
    }
    message.fields.iter().try_for_each(|field| member(field, object, output))
}

fn member(field: &Field, object: &Value, output: &mut Vec<u8>) -> Result<(), EncodeError> {
    let value = if field.inline { object } else { object.get(field.member).unwrap_or(&Value::Null) };
    let misfit = || misfit(field.member, value);
    match field.kind {
        Kind::One(_) | Kind::List(_) | Kind::Map(_) if value.is_null() && is_left_out(field) => Ok(()),
        Kind::One(type_) => put(output, field.number, type_, value, field.member),
        Kind::List(type_) => {
            let items = value.as_array().ok_or_else(misfit)?;
            items.iter().try_for_each(|item| put(output, field.number, type_, item, field.member))
        }
        Kind::Map(type_) => value.as_object().ok_or_else(misfit)?.iter().try_for_each(|(key, value)| {
            put_nested(output, field.number, |output| {
                put_bytes(output, KEY, key.as_bytes());
                put(output, VALUE, type_, value, field.member)
            })
        }),
    }
}

/// Whether a member without a value is not written.
fn is_left_out(field: &Field) -> bool {
    field.optional || !matches!(field.kind, Kind::One(_))
}

fn put(output: &mut Vec<u8>, number: u32, type_: Type, value: &Value, member: &str) -> Result<(), EncodeError> {
    let misfit = || misfit(member, value);
    match type_ {
        Type::String => put_bytes(output, number, text(value).ok_or_else(misfit)?.as_bytes()),
        Type::Bool => {
            let flag = if value.is_null() { false } else { value.as_bool().ok_or_else(misfit)? };
            put_number(output, number, i64::from(flag));
        }
        Type::Int32 | Type::Int64 => {
            let value = if value.is_null() { 0 } else { value.as_i64().ok_or_else(misfit)? };
            put_number(output, number, value);
        }
        Type::Double => {
            let value = if value.is_null() { 0.0 } else { value.as_f64().ok_or_else(misfit)? };
            put_double(output, number, value);
        }
        Type::Bytes if value.is_null() => {}
        Type::Bytes => {
            let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok()).ok_or_else(misfit)?;
            put_bytes(output, number, &bytes);
        }
        _ => put_nested(output, number, |output| put_message(output, type_, value, member))?,
    }
    Ok(())
}

/// What is in a value that is a message.
fn put_message(output: &mut Vec<u8>, type_: Type, value: &Value, member: &str) -> Result<(), EncodeError> {
    let misfit = || misfit(member, value);
    let schema = |index: usize, number: u32, value: &Value, output: &mut Vec<u8>| {
        put_nested(output, number, |output| object(Messages::get().at(index), value, output))
    };
    match type_ {
        Type::Message(index) => return object(Messages::get().at(index), value, output),
        Type::Time | Type::MicroTime | Type::Raw if value.is_null() => {}
        Type::Time | Type::MicroTime => {
            let text = value.as_str().ok_or_else(misfit)?;
            forms::put_time(output, text, type_ == Type::MicroTime).ok_or_else(misfit)?;
        }
        Type::IntOrString => forms::put_int_or_string(output, value).ok_or_else(misfit)?,
        Type::Quantity => match value {
            Value::String(text) => put_bytes(output, ONLY, text.as_bytes()),
            Value::Number(number) => put_bytes(output, ONLY, number.to_string().as_bytes()),
            Value::Null => put_bytes(output, ONLY, b"0"),
            _ => return Err(misfit()),
        },
        Type::Raw => put_bytes(output, ONLY, value.to_string().as_bytes()),
        Type::Strings => put_strings(output, ONLY, value).ok_or_else(misfit)?,
        Type::SchemaOrBool(index) => {
            put_number(output, 1, i64::from(value.is_object() || value.as_bool() == Some(true)));
            if value.is_object() {
                schema(index, 2, value, output)?;
            }
        }
        Type::SchemaOrArray(index) => match value {
            Value::Array(items) => items.iter().try_for_each(|item| schema(index, 2, item, output))?,
            Value::Null => {}
            one => schema(index, 1, one, output)?,
        },
        Type::SchemaOrStrings(index) => match value {
            Value::Object(_) => schema(index, 1, value, output)?,
            other => put_strings(output, 2, other).ok_or_else(misfit)?,
        },
        Type::String | Type::Bool | Type::Int32 | Type::Int64 | Type::Double | Type::Bytes => return Err(misfit()),
    }
    Ok(())
}

fn put_strings(output: &mut Vec<u8>, number: u32, value: &Value) -> Option<()> {
    if value.is_null() {
        return Some(());
    }
    for item in value.as_array()? {
        put_bytes(output, number, text(item)?.as_bytes());
    }
    Some(())
}

fn text(value: &Value) -> Option<&str> {
    if value.is_null() { Some("") } else { value.as_str() }
}

fn misfit(member: &str, value: &Value) -> EncodeError {
    let shown: String = value.to_string().chars().take(80).collect();
    EncodeError::Type { member: member.to_owned(), value: shown }
}
