//! The document as a protobuf message, which is how Go programs ask for it.

use std::convert::Infallible;

use serde_json::Value;

use crate::protobuf::wire::{put_bytes, put_double, put_nested, put_number};

/// Numbers of the members of a schema, by what they hold.
const TEXTS: [(&str, u32); 6] =
    [("$ref", 1), ("format", 2), ("title", 3), ("description", 4), ("pattern", 13), ("discriminator", 26)];
const DOUBLES: [(&str, u32); 3] = [("multipleOf", 6), ("maximum", 7), ("minimum", 9)];
const BOOLEANS: [(&str, u32); 4] =
    [("exclusiveMaximum", 8), ("exclusiveMinimum", 10), ("uniqueItems", 16), ("readOnly", 27)];
const COUNTS: [(&str, u32); 6] = [
    ("maxLength", 11),
    ("minLength", 12),
    ("maxItems", 14),
    ("minItems", 15),
    ("maxProperties", 17),
    ("minProperties", 18),
];

/// The bytes of a document.
pub fn encode(document: &Value) -> Vec<u8> {
    let mut output = Vec::new();
    put_text(&mut output, 1, &document["swagger"]);
    nested(&mut output, 2, |info| {
        put_text(info, 1, &document["info"]["title"]);
        put_text(info, 2, &document["info"]["version"]);
    });
    nested(&mut output, 8, |_| {});
    nested(&mut output, 9, |definitions| put_named(definitions, &document["definitions"]));
    output
}

fn nested(output: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let Ok(()) = put_nested::<Infallible>(output, number, |output| {
        write(output);
        Ok(())
    });
}

fn put_text(output: &mut Vec<u8>, number: u32, value: &Value) {
    if let Some(text) = value.as_str() {
        put_bytes(output, number, text.as_bytes());
    }
}

/// Schemas with their names.
fn put_named(output: &mut Vec<u8>, schemas: &Value) {
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        nested(output, 1, |named| {
            put_bytes(named, 1, name.as_bytes());
            nested(named, 2, |value| put_schema(value, schema));
        });
    }
}

fn put_schema(output: &mut Vec<u8>, schema: &Value) {
    for (name, number) in TEXTS {
        put_text(output, number, &schema[name]);
    }
    for (name, number) in DOUBLES {
        if let Some(value) = schema[name].as_f64() {
            put_double(output, number, value);
        }
    }
    for (name, number) in BOOLEANS {
        if schema[name] == true {
            put_number(output, number, 1);
        }
    }
    for (name, number) in COUNTS {
        if let Some(value) = schema[name].as_i64() {
            put_number(output, number, value);
        }
    }
    if let Some(value) = schema.get("default") {
        nested(output, 5, |any| put_any(any, value));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        put_text(output, 19, name);
    }
    for value in schema["enum"].as_array().into_iter().flatten() {
        nested(output, 20, |any| put_any(any, value));
    }
    match &schema["additionalProperties"] {
        Value::Null => {}
        Value::Bool(allowed) => nested(output, 21, |item| put_number(item, 2, (*allowed).into())),
        values => nested(output, 21, |item| nested(item, 1, |value| put_schema(value, values))),
    }
    if schema["type"].is_string() {
        nested(output, 22, |item| put_text(item, 1, &schema["type"]));
    }
    if schema["items"].is_object() {
        nested(output, 23, |item| nested(item, 1, |value| put_schema(value, &schema["items"])));
    }
    if schema["properties"].is_object() {
        nested(output, 25, |properties| put_named(properties, &schema["properties"]));
    }
    for (name, value) in schema.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        nested(output, 31, |extension| {
            put_bytes(extension, 1, name.as_bytes());
            nested(extension, 2, |any| put_any(any, value));
        });
    }
}

/// A value of any kind, as YAML. JSON is YAML, too.
fn put_any(output: &mut Vec<u8>, value: &Value) {
    put_bytes(output, 2, format!("{value}\n").as_bytes());
}
