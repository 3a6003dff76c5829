//! Whether the result of a strategic patch is still an object of its kind: what happens when the real server turns the
//! merged document into its own types, and the words it has for what does not fit.

use serde_json::Value;

use super::display::{go_kind, go_type};
use crate::builtin::Quantity;
use crate::go_text::{illegal_base64, type_name};
use crate::go_time::{self, Layout};
use crate::schema::{Schema, Type};

/// Finds the first value whose type is wrong. Numbers become what their place can hold.
pub(crate) fn convert(value: &mut Value, schema: &Schema) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    if schema.int_or_string {
        return match value {
            Value::String(_) | Value::Number(_) => Ok(()),
            other => Err(format!("json: cannot unmarshal {} into Go value of type int32", type_name(other))),
        };
    }
    match schema.type_ {
        Some(Type::Object) => convert_object(value, schema),
        Some(Type::Array) => convert_list(value, schema),
        Some(Type::String) => check_text(value, schema),
        Some(Type::Integer) => convert_integer(value, schema),
        Some(Type::Number) if value.is_number() => Ok(()),
        Some(Type::Number) => Err("unrecognized type: float64".to_owned()),
        Some(Type::Boolean) if value.is_boolean() => Ok(()),
        Some(Type::Boolean) => Err("unrecognized type: bool".to_owned()),
        // A quantity is a text or a number.
        None if schema.one_of.len() == 2 => {
            let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
            Quantity::read(&text).map(drop).map_err(|error| error.to_string())
        }
        None => Ok(()),
    }
}

fn convert_object(value: &mut Value, schema: &Schema) -> Result<(), String> {
    let is_map = schema.additional_properties.is_some();
    if !is_map && schema.properties.is_empty() {
        // Anything goes: raw extensions, managed fields.
        return Ok(());
    }
    let Value::Object(members) = value else {
        let kind = go_kind(value);
        return Err(if is_map {
            format!("cannot restore map from {kind}")
        } else {
            format!("cannot restore struct from: {kind}")
        });
    };
    for (name, member) in members {
        if let Some(schema) = schema.member(name) {
            convert(member, schema)?;
        }
    }
    Ok(())
}

fn convert_list(value: &mut Value, schema: &Schema) -> Result<(), String> {
    let Value::Array(items) = value else { return Err(format!("cannot restore slice from {}", go_kind(value))) };
    match &schema.items {
        Some(schema) => items.iter_mut().try_for_each(|item| convert(item, schema)),
        None => Ok(()),
    }
}

fn check_text(value: &Value, schema: &Schema) -> Result<(), String> {
    match value {
        Value::String(text) => match schema.format.as_deref() {
            Some("byte") => illegal_base64(text).map_or(Ok(()), |byte| {
                Err(format!("error decoding from json: illegal base64 data at input byte {byte}"))
            }),
            Some("date-time") => go_time::complaint(text, Layout::Seconds).map_or(Ok(()), Err),
            _ => Ok(()),
        },
        // Bytes are a slice, and times read themselves.
        other if schema.format.as_deref() == Some("byte") => {
            Err(format!("cannot restore slice from {}", go_kind(other)))
        }
        other if schema.format.as_deref() == Some("date-time") => {
            Err(format!("json: cannot unmarshal {} into Go value of type string", type_name(other)))
        }
        Value::Number(number) if !number.is_f64() => Err("cannot convert int64 to string".to_owned()),
        _ => Err("unrecognized type: string".to_owned()),
    }
}

/// Fractions are refused. What is too large loses its upper bits, as it does in Go.
#[expect(clippy::cast_possible_truncation, reason = "that is what the real server does")]
fn convert_integer(value: &mut Value, schema: &Schema) -> Result<(), String> {
    let target = schema.format.as_deref().unwrap_or("int64");
    let Value::Number(number) = &*value else { return Err(format!("unrecognized type: {target}")) };
    let whole = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole,
        (None, Some(float)) if float.fract() == 0.0 => float as i64,
        _ => return Err(format!("cannot convert {} to {target}", go_type(value))),
    };
    *value = if target == "int32" { (whole as i32).into() } else { whole.into() };
    Ok(())
}
