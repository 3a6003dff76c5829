//! Whether an object fits its schema as far as field ownership needs: the right kinds of values, no unknown members,
//! and list items that can be told apart. Everything that walks an object afterwards relies on it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::NESTING_LIMIT;
use super::path::{PathElement, shown};
use super::shape::{Kind, List, Map, Place, Scalar};
use crate::sorted;

/// Whether a list may hold the same item twice. What is applied may not; what lives may have it from before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Refused,
}

/// Says what is wrong with an object, in the words of the real server.
pub(super) fn check(place: Place<'_>, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    check_nesting(value)?;
    let mut check = Check { duplicates, path: Vec::new(), errors: Vec::new() };
    check.visit(place, value);
    match check.errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(several.iter().fold("errors:".to_owned(), |text, error| text + "\n  " + error)),
    }
}

/// To be asked before anything else is done with an object from outside: nearly everything recurses.
pub(super) fn check_nesting(value: &Value) -> Result<(), String> {
    if is_nested_deeper(value, NESTING_LIMIT) { Err("the object is nested too deeply".to_owned()) } else { Ok(()) }
}

fn is_nested_deeper(value: &Value, limit: usize) -> bool {
    let Some(limit) = limit.checked_sub(1) else { return value.is_array() || value.is_object() };
    match value {
        Value::Array(items) => items.iter().any(|item| is_nested_deeper(item, limit)),
        Value::Object(members) => members.values().any(|member| is_nested_deeper(member, limit)),
        _ => false,
    }
}

struct Check {
    duplicates: Duplicates,
    path: Vec<PathElement>,
    errors: Vec<String>,
}

impl Check {
    fn report(&mut self, problem: &str) {
        self.errors.push(format!("{}: {problem}", shown(&self.path)));
    }

    fn visit(&mut self, place: Place<'_>, value: &Value) {
        if value.is_null() {
            return;
        }
        let shape = place.shape().of(Some(value));
        match shape.kind() {
            Kind::Map(map) => self.visit_map(&map, value),
            Kind::List(list) => self.visit_list(&list, value),
            Kind::Scalar => self.visit_scalar(shape.scalar.unwrap_or(Scalar::Any), value),
        }
    }

    fn visit_scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (Scalar::Text, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Numeric, Value::Number(_))
            | (Scalar::Any, Value::String(_) | Value::Bool(_) | Value::Number(_)) => {}
            (Scalar::Text, other) => {
                let mut text = String::new();
                write_go_syntax(other, &mut text);
                self.report(&format!("expected string, got &value.valueUnstructured{{Value:{text}}}"));
            }
            (Scalar::Numeric, other) => {
                self.report(&format!("expected numeric (int or float), got {}", go_type(other)));
            }
            (Scalar::Boolean, other) => self.report_expected("boolean", other),
            (Scalar::Any, other) => self.report_expected("any scalar", other),
        }
    }

    fn report_expected(&mut self, expected: &str, value: &Value) {
        let mut text = String::new();
        write_go_plain(value, &mut text);
        self.report(&format!("expected {expected}, got &{{{text}}}"));
    }

    fn visit_map(&mut self, map: &Map<'_>, value: &Value) {
        let Some(members) = value.as_object() else { return self.report_expected("map", value) };
        for (name, member) in members {
            self.path.push(PathElement::field(name));
            match map.member(name) {
                Some(place) => self.visit(place, member),
                None => self.report("field not declared in schema"),
            }
            self.path.pop();
        }
    }

    fn visit_list(&mut self, list: &List<'_>, value: &Value) {
        let Some(items) = value.as_array() else { return self.report_expected("list", value) };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if list.is_atomic() {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match list.element(item) {
                    Ok(element) => element,
                    // Without names for the items there is nothing more to say about the list.
                    Err(problem) => return self.report(&format!("element {index}: {problem}")),
                }
            };
            if self.duplicates == Duplicates::Refused && !seen.insert(element.clone()) {
                self.report(&format!("duplicate entries for key {element}"));
            }
            self.path.push(element);
            self.visit(list.items, item);
            self.path.pop();
        }
    }
}

// The real server shows wrong values the way its own language prints them.

const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn write_go_plain(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::String(string) => text.push_str(string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { " " });
                write_go_plain(item, text);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push_str("map[");
            for (index, (name, member)) in sorted::members(members).into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { " " });
                text.push_str(name);
                text.push(':');
                write_go_plain(member, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&go_scalar(scalar)),
    }
}

fn write_go_syntax(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("interface {}(nil)"),
        Value::Array(items) => {
            text.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                write_go_syntax(item, text);
            }
            text.push('}');
        }
        Value::Object(members) => {
            text.push_str("map[string]interface {}{");
            for (index, (name, member)) in sorted::members(members).into_iter().enumerate() {
                // Writing to a string does not fail.
                let _ = write!(text, "{}{name:?}:", if index == 0 { "" } else { ", " });
                write_go_syntax(member, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&go_scalar(scalar)),
    }
}

/// A whole number is shown without a fraction, however it was written.
fn go_scalar(value: &Value) -> String {
    let text = value.to_string();
    if value.is_f64() { text.strip_suffix(".0").map_or(text.clone(), str::to_owned) } else { text }
}
