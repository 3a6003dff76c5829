//! Events. Those of `events.k8s.io` have to be complete and stay as they are; those of the core group get away with
//! nearly anything. Both are looked at in the core form, and that is how messages name their members.

use serde_json::{Value, json};

use super::super::metadata::{validate_any_update, validate_metadata, validate_metadata_update};
use super::super::place::{At, struct_text};
use super::super::{Builtin, event_to_core};
use super::{IMMUTABLE, finalizers, name_rule};
use crate::names::qualified_name;
use crate::status::{FieldError, Problem};

/// The most bytes that short texts may have, and that the message may have.
const SHORT: usize = 128;
const LONG: usize = 1024;
const ELSEWHERE: &str = "does not match event.namespace";

fn is_strict(kind: &Builtin) -> bool {
    kind.group == "events.k8s.io"
}

fn core_form(kind: &Builtin, event: &Value) -> Value {
    let mut event = event.clone();
    if is_strict(kind) {
        event_to_core(&mut event);
    }
    event
}

pub(super) fn create(kind: &Builtin, event: &Value) -> Vec<FieldError> {
    let event = core_form(kind, event);
    let root = At::root(&event);
    let mut errors = always(kind, &root);
    if !is_strict(kind) {
        return if errors.is_empty() { validate_metadata(&event, name_rule(kind), finalizers(kind)) } else { errors };
    }
    errors.extend(validate_metadata(&event, name_rule(kind), finalizers(kind)));
    errors.extend(series(&root));
    if !root.has("eventTime") {
        errors.push(root.member("eventTime").required(""));
    }
    if !matches!(root.text("type"), "Normal" | "Warning") {
        errors.push(root.member("type").invalid_as("", &format!("has invalid value: {}", root.text("type"))));
    }
    for name in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let is_unset = match root.member(name).value {
            Value::Null => true,
            Value::Number(number) => number.as_i64() == Some(0),
            Value::Object(source) => source.values().all(|part| part.as_str().is_none_or(str::is_empty)),
            _ => false,
        };
        if !is_unset {
            errors.push(root.member(name).invalid_as("", "needs to be unset"));
        }
    }
    errors
}

pub(super) fn update(kind: &Builtin, new: &Value, old: &Value) -> Vec<FieldError> {
    let (new, old) = (core_form(kind, new), core_form(kind, old));
    let root = At::root(&new);
    let mut errors = validate_any_update(&new, &old);
    errors.extend(always(kind, &root));
    if !is_strict(kind) {
        return errors;
    }
    errors.extend(validate_metadata_update(&new, &old, finalizers(kind)));
    if new["series"] != old["series"] {
        errors.extend(series(&root));
    }
    let reference = ["Kind", "Namespace", "Name", "UID", "APIVersion", "ResourceVersion", "FieldPath"];
    for (name, shown) in [
        ("involvedObject", Shown::Struct(&reference)),
        ("reason", Shown::Text),
        ("message", Shown::Text),
        ("source", Shown::Struct(&["Component", "Host"])),
        ("firstTimestamp", Shown::Value),
        ("lastTimestamp", Shown::Value),
        ("count", Shown::Value),
        // The real server looks twice.
        ("reason", Shown::Text),
        ("type", Shown::Text),
        ("eventTime", Shown::Value),
        ("action", Shown::Text),
        ("related", Shown::Struct(&reference)),
        ("reportingComponent", Shown::Text),
        ("reportingInstance", Shown::Text),
    ] {
        let (now, before) = (&new[name], &old[name]);
        if now != before && !(is_empty(now) && is_empty(before)) {
            let name = if name == "reportingComponent" { "reportingController" } else { name };
            errors.push(FieldError::new(name, shown.problem(now), IMMUTABLE));
        }
    }
    errors
}

/// Absent, and the ways in which the stored form writes it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

/// How a value is written in a message.
enum Shown<'a> {
    Text,
    Value,
    /// A struct, by the names that its members have in the real server.
    Struct(&'a [&'a str]),
}

impl Shown<'_> {
    fn problem(&self, value: &Value) -> Problem {
        match self {
            Self::Text => Problem::Invalid(json!(value.as_str().unwrap_or_default())),
            Self::Struct(names) if value.is_object() => {
                let member = |name: &str| {
                    let found = value.as_object().into_iter().flatten();
                    let found = found.into_iter().find(|(member, _)| member.eq_ignore_ascii_case(name));
                    found.map_or_else(|| "\"\"".to_owned(), |(_, value)| value.to_string())
                };
                let members: Vec<_> = names.iter().map(|name| (*name, member(name))).collect();
                Problem::InvalidStruct(struct_text(&members))
            }
            Self::Value | Self::Struct(_) => Problem::Invalid(value.clone()),
        }
    }
}

/// What both kinds of events must keep.
fn always(kind: &Builtin, root: &At<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let namespace = root.deep("metadata.namespace");
    let about = root.deep("involvedObject.namespace");
    // Objects without a namespace have their events in a namespace all the same.
    let may_be_without: &[&str] = if root.has("eventTime") { &["default", "kube-system"] } else { &["", "default"] };
    let fits = match about.own_text() {
        "" => may_be_without.contains(&namespace.own_text()),
        about => root.has("eventTime") || about == namespace.own_text(),
    };
    if !fits {
        errors.push(about.invalid_as(about.own_text(), ELSEWHERE));
    }
    if !root.has("eventTime") {
        return errors;
    }
    let name = if is_strict(kind) { "reportingController" } else { "reportingComponent" };
    let reporter = At { path: name.to_owned(), value: &root.value["reportingComponent"] };
    if reporter.own_text().is_empty() {
        errors.push(reporter.required(""));
    }
    errors.extend(reporter.each(qualified_name(reporter.own_text())));
    for name in ["reportingInstance", "action", "reason"] {
        if root.text(name).is_empty() {
            errors.push(root.member(name).required(""));
        }
        errors.extend(too_long(&root.member(name), SHORT));
    }
    errors.extend(too_long(&root.member("message"), LONG));
    errors
}

fn too_long(place: &At<'_>, limit: usize) -> Option<FieldError> {
    (place.own_text().len() > limit).then(|| place.invalid_as("", &format!("can have at most {limit} characters")))
}

fn series(root: &At<'_>) -> Vec<FieldError> {
    let series = root.member("series");
    let mut errors = Vec::new();
    if series.is_set() {
        if series.number("count").unwrap_or_default() < 2 {
            errors.push(series.member("count").invalid_as("", "should be at least 2"));
        }
        if !series.has("lastObservedTime") {
            errors.push(series.member("lastObservedTime").required(""));
        }
    }
    errors
}
