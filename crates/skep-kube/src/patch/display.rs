//! Values the way Go prints them, which is how they stand in the messages about strategic patches.

use serde_json::Value;

use crate::{go_text, sorted};

/// Prints a value: `map[name:web ports:[80 81]]`.
pub(super) fn shown(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value);
    text
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&go_text::number(number)),
        Value::String(string) => text.push_str(string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                push(text, item);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push_str("map[");
            for (index, (name, member)) in sorted::members(members).into_iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(name);
                text.push(':');
                push(text, member);
            }
            text.push(']');
        }
    }
}

/// What Go calls the type of a value.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// What Go calls the kind of a value.
pub(super) fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
        other => go_type(other),
    }
}

/// A value where a text is expected.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={})", go_type(value), shown(value)),
        other => shown(other),
    }
}
