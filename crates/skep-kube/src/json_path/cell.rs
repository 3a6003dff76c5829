//! The cells of tables: values of printer columns.

use serde_json::{Number, Value};
use time::OffsetDateTime;

use super::JsonPath;
use crate::age;

/// The types that a printer column can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    String,
    Integer,
    Number,
    Boolean,
    /// A timestamp, shown as its age. The server writes the age, not the client.
    Date,
}

impl ColumnType {
    pub fn read(name: &str) -> Option<Self> {
        match name {
            "string" => Some(Self::String),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "boolean" => Some(Self::Boolean),
            "date" => Some(Self::Date),
            _ => None,
        }
    }
}

/// The cell of an object: the first value at the path, or null where there is none of the type.
pub fn cell(object: &Value, path: &JsonPath, column: ColumnType, now: OffsetDateTime) -> Value {
    let Some(value) = path.evaluate(object).first().copied() else { return Value::Null };
    match (column, value) {
        (ColumnType::String, value) => text(value).into(),
        (ColumnType::Integer, Value::Number(number)) => integer(number).into(),
        (ColumnType::Number, Value::Number(_)) | (ColumnType::Boolean, Value::Bool(_)) => value.clone(),
        (ColumnType::Date, Value::String(timestamp)) => age::since(timestamp, now).into(),
        _ => Value::Null,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "Go truncates too, and its overflow is the smallest integer")]
fn integer(number: &Number) -> i64 {
    let truncated = |float: f64| if float.abs() < 9.2e18 { float.trunc() as i64 } else { i64::MIN };
    number.as_i64().unwrap_or_else(|| number.as_f64().map_or(i64::MIN, truncated))
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => crate::go_text::number(number),
        Value::String(text) => text.clone(),
        other => go_json(other),
    }
}

/// JSON as Go writes it: in the order of names, safe to stand in HTML, and without needless fractions.
fn go_json(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    shorten_numbers(&mut value);
    let escapes =
        [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    escapes.iter().fold(value.to_string(), |json, (character, escape)| json.replace(*character, escape))
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn shorten_numbers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(shorten_numbers),
        Value::Object(members) => members.values_mut().for_each(shorten_numbers),
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9.0e15) {
                *value = (float as i64).into();
            }
        }
        _ => {}
    }
}
