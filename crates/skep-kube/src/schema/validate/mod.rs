//! Whether an object keeps to its schema, told as the real server tells it.
//!
//! The order is the server's: the keywords of the schema, then embedded objects, then lists that are sets or maps, and
//! at last the CEL rules, which are left out when the object is not what they were written for.

mod branches;
mod embedded;
pub(crate) mod format;
mod keywords;
mod lists;
mod scalars;
mod scale;

pub use scale::Scale;

pub(super) use embedded::{kind_problem, label_problem};
pub(super) use format::is_known as format_is_known;

use serde_json::Value;

use super::Schema;
use super::pattern::Patterns;
use super::rules::CompiledRules;
use crate::status::{FieldError, Problem};

/// What errors name that stand at no field.
pub(super) const NO_FIELD: &str = "<nil>";

const RULES_LEFT_OUT: &str = "some validation rules were not checked because the object was invalid; \
                              correct the existing errors to complete validation";

/// A schema with everything that is costly to prepare: its patterns and its CEL rules. Made once per version of a CRD.
#[derive(Debug)]
pub struct CompiledSchema {
    schema: std::sync::Arc<Schema>,
    patterns: Patterns,
    rules: CompiledRules,
    scale: Option<Scale>,
}

impl CompiledSchema {
    pub fn new(schema: std::sync::Arc<Schema>) -> Self {
        let patterns = Patterns::of(&schema);
        let rules = CompiledRules::compile(&schema);
        Self { schema, patterns, rules, scale: None }
    }

    /// With a scale subresource, the members that it reads are looked at once more.
    #[must_use]
    pub fn with_scale(mut self, scale: Option<Scale>) -> Self {
        self.scale = scale;
        self
    }

    /// Whether validation may take time, because there are rules to evaluate.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}

/// Everything that is wrong with an object, which must have been pruned and defaulted before. With the `old` object what
/// has not changed is not held against the new one. `metadata` at the root is not looked at.
pub fn validate(compiled: &CompiledSchema, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let schema = &compiled.schema;
    let mut errors = keywords::check(schema, &compiled.patterns, new, old);
    errors.iter_mut().filter(|error| error.field.is_empty()).for_each(|error| NO_FIELD.clone_into(&mut error.field));
    errors.extend(compiled.scale.iter().flat_map(|scale| scale.check(new)));
    finish(compiled, new, old, &mut errors);
    errors
}

/// What comes after the keywords.
fn finish(compiled: &CompiledSchema, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let schema = &compiled.schema;
    embedded::check(schema, new, "", errors);
    // Sets and maps that were broken before may stay so.
    if old.is_none_or(|old| lists::check(schema, old).is_empty()) {
        errors.extend(lists::check(schema, new));
    }
    if !compiled.rules.is_empty() {
        if errors.iter().any(blocks_rules) {
            errors.push(FieldError::invalid(NO_FIELD, Value::Null, RULES_LEFT_OUT));
        } else {
            errors.extend(compiled.rules.check(schema, new, old));
        }
    }
}

/// As [`validate`], for a request that writes `status` alone: the keywords of the rest are not looked at, and texts name
/// fields as seen from the status.
pub fn validate_status(compiled: &CompiledSchema, new: &Value, old: &Value) -> Vec<FieldError> {
    let schema = &compiled.schema;
    let mut errors = Vec::new();
    if let (Some(status_schema), Some(status)) = (schema.properties.get("status"), new.get("status")) {
        errors = keywords::check(status_schema, &compiled.patterns, status, old.get("status"));
        for error in &mut errors {
            error.field = if error.field.is_empty() { "status".to_owned() } else { format!("status.{}", error.field) };
        }
    }
    errors.extend(compiled.scale.iter().flat_map(|scale| scale.check_status(new)));
    finish(compiled, new, Some(old), &mut errors);
    errors
}

/// Everything that is wrong with a default, by fields relative to it.
pub(super) fn validate_default(schema: &std::sync::Arc<Schema>, default: &Value) -> Vec<FieldError> {
    let patterns = Patterns::of(schema);
    let mut errors = keywords::check(schema, &patterns, default, None);
    embedded::check(schema, default, "", &mut errors);
    if errors.is_empty() {
        errors.extend(CompiledRules::compile(schema).check_inside(schema, default));
    }
    errors
}

/// Whether an object with this error is not what CEL rules were written for.
fn blocks_rules(error: &FieldError) -> bool {
    matches!(
        error.problem,
        Problem::NotSupported(_) | Problem::Required | Problem::TooLong | Problem::TooMany(_) | Problem::TypeInvalid(_)
    )
}

#[cfg(test)]
mod tests;
