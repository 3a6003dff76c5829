//! The keywords of a schema at one place and below: the order of the checks and the walk through members and items.

use serde_json::{Map, Value};

use super::super::counterparts::Counterparts;
use super::super::pattern::Patterns;
use super::super::{Schema, path};
use super::{branches, scalars};
use crate::status::FieldError;

/// What came of checking one value against one schema.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Errors by the path from the root; an empty path for those that name no field.
    pub errors: Vec<FieldError>,
    /// How much of the schema was looked at: of several branches that fail, the one with the most is told.
    pub weight: usize,
}

impl Outcome {
    pub(super) fn merge(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.weight += other.weight;
    }

    /// One more check was done.
    fn done(&mut self, errors: Vec<FieldError>) {
        self.errors.extend(errors);
        self.weight += 1;
    }
}

/// Everything that the keywords of a schema have against a value. The path of errors starts at the value.
pub(super) fn check(schema: &Schema, patterns: &Patterns, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    Walk { patterns }.value(schema, new, old, "").errors
}

pub(super) struct Walk<'a> {
    patterns: &'a Patterns,
}

impl Walk<'_> {
    pub(super) fn value(&self, schema: &Schema, new: &Value, old: Option<&Value>, at: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let type_error = scalars::type_(schema, new, at);
        outcome.weight += usize::from(type_error.is_none());
        outcome.errors.extend(type_error);
        if new.is_null() {
            outcome.errors.extend(scalars::enumeration(schema, new, at));
        } else {
            outcome.weight += 1;
            self.present(schema, new, old, at, &mut outcome);
            outcome.weight += 1;
        }
        // What was wrong before and has not changed is not held against the new object.
        if !outcome.errors.is_empty() && old == Some(new) {
            outcome.errors.clear();
        }
        outcome
    }

    fn present(&self, schema: &Schema, new: &Value, old: Option<&Value>, at: &str, outcome: &mut Outcome) {
        outcome.merge(branches::check(self, schema, new, old, at));
        outcome.weight += 1;
        match new {
            Value::String(text) => {
                outcome.done(scalars::text(schema, self.patterns, text, at).into_iter().collect());
                if let Some(format) = scalars::text_format(schema) {
                    outcome.done(scalars::format(format, text, at).into_iter().collect());
                }
            }
            Value::Number(number) => outcome.done(scalars::number(schema, number, at)),
            Value::Array(items) => outcome.merge(self.items(schema, items, old, at)),
            _ => {}
        }
        outcome.done(scalars::enumeration(schema, new, at).into_iter().collect());
        if let Value::Object(members) = new {
            outcome.merge(self.members(schema, members, old, at));
        }
    }

    fn items(&self, schema: &Schema, items: &[Value], old: Option<&Value>, at: &str) -> Outcome {
        let mut outcome = Outcome { weight: 1, ..Outcome::default() };
        if let Some(item_schema) = &schema.items {
            let counterparts = Counterparts::of(schema, old);
            for (index, item) in items.iter().enumerate() {
                outcome.merge(self.value(item_schema, item, counterparts.find(item), &path::item(at, index)));
            }
        }
        let count = items.len() as u64;
        if let Some(least) = schema.bounds.min_items.filter(|least| count < *least) {
            let detail = format!("{at} in body should have at least {least} items");
            outcome.errors.push(FieldError::invalid(at, count, detail));
        }
        if let Some(most) = schema.bounds.max_items.filter(|most| count > *most) {
            outcome.errors.push(scalars::too_many(at, count, most));
        }
        outcome
    }

    fn members(&self, schema: &Schema, members: &Map<String, Value>, old: Option<&Value>, at: &str) -> Outcome {
        let mut outcome = Outcome { weight: 1, ..Outcome::default() };
        let count = members.len() as u64;
        if let Some(least) = schema.bounds.min_properties.filter(|least| count < *least) {
            let detail = format!("{at} in body should have at least {least} properties");
            outcome.errors.push(FieldError::invalid(at, count, detail));
            return outcome;
        }
        if let Some(most) = schema.bounds.max_properties.filter(|most| count > *most) {
            outcome.errors.push(scalars::too_many(at, count, most));
            return outcome;
        }
        for (name, member) in members {
            if let Some(member_schema) = schema.member(name) {
                let old = old.and_then(|old| old.get(name));
                outcome.merge(self.value(member_schema, member, old, &path::member(at, name)));
            } else if schema.additional_allowed == Some(false) {
                let detail = format!("{} in body is a forbidden property", path::member(at, name));
                outcome.errors.push(FieldError::invalid(at, name.as_str(), detail));
            }
        }
        for name in schema.required.iter().filter(|name| !members.contains_key(name.as_str())) {
            outcome.errors.push(FieldError::required(path::member(at, name), ""));
        }
        outcome
    }
}
