//! What is said when a rule is broken, or cannot be evaluated.

use serde_json::Value;

use super::super::{Rule, Schema, path};
use super::budget::Overdrawn;
use crate::status::{FieldError, Problem};

/// The error of a rule that an object breaks. Only single values are shown.
pub(super) fn broken(rule: &Rule, schema: &Schema, value: &Value, at: &str, message: String) -> FieldError {
    let field = field(schema, at, rule.field_path.as_deref().unwrap_or_default());
    let shown = !value.is_object() && !value.is_array();
    match rule.reason.as_deref() {
        Some("FieldValueRequired") => FieldError::required(field, message),
        Some("FieldValueForbidden") => FieldError::forbidden(field, message),
        Some("FieldValueDuplicate") if shown => FieldError::duplicate(field, value.clone()),
        Some("FieldValueDuplicate") => FieldError::new(field, Problem::DuplicateHidden, ""),
        _ if shown => FieldError::invalid(field, value.clone(), message),
        _ => FieldError::new(field, Problem::InvalidHidden, message),
    }
}

/// The error of a rule that could not be evaluated.
pub(super) fn failed(rule: &Rule, schema: &Schema, at: &str, problem: &str) -> FieldError {
    let named = named(rule);
    let detail = if problem.starts_with("no such overload") {
        format!(
            "'{problem}': call arguments did not match a supported operator, function or macro signature for rule: \
             {named}"
        )
    } else {
        format!("{problem} evaluating rule: {named}")
    };
    FieldError::invalid(at, type_name(schema), detail)
}

/// The error of a rule that costs too much.
pub(super) fn too_expensive(rule: &Rule, schema: &Schema, at: &str, why: Overdrawn) -> FieldError {
    let detail = match why {
        Overdrawn::Rule => format!(
            "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost \
             exceeds limit for rule: {}",
            named(rule)
        ),
        Overdrawn::Object => {
            "validation failed due to running out of cost budget, no further validation rules will be run".to_owned()
        }
    };
    FieldError::invalid(at, type_name(schema), detail)
}

/// What a rule is called: its message, or itself.
fn named(rule: &Rule) -> &str {
    rule.message.as_deref().filter(|message| !message.is_empty()).unwrap_or(&rule.rule).trim()
}

fn type_name(schema: &Schema) -> &'static str {
    schema.type_.filter(|_| !schema.int_or_string).map(super::super::Type::name).unwrap_or_default()
}

/// The field that a rule names, seen from the place where it stands: `.spec.name` or `['name']`.
fn field(schema: &Schema, at: &str, field_path: &str) -> String {
    let mut field = at.to_owned();
    let mut schema = Some(schema);
    for name in steps(field_path).unwrap_or_default() {
        let property = schema.and_then(|schema| schema.properties.get(&name));
        if property.is_some() {
            path::push_member(&mut field, &name);
        } else {
            field = path::entry(&field, &name);
        }
        schema =
            property.or_else(|| schema.and_then(|schema| schema.additional_properties.as_ref())).map(AsRef::as_ref);
    }
    field
}

/// The names in a field path. Nothing when it is none.
pub(crate) fn steps(field_path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = field_path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let (name, after) = quoted.split_once("']")?;
            steps.push(name.replace("\\'", "'"));
            rest = after;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(after[..end].to_owned());
            rest = &after[end..];
        }
    }
    Some(steps)
}
