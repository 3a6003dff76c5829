//! Whether defaults are what their schema asks for.

use std::sync::Arc;

use serde_json::Value;

use super::super::Schema;
use super::super::prune::prune_value;
use super::super::validate::validate_default;
use super::places;
use crate::status::FieldError;

pub(super) fn check(schema: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    places(schema, at, 0, &mut |place, path| {
        if !place["default"].is_null() {
            errors.extend(check_one(place, &format!("{path}.default"), path == at));
        }
    });
    errors
}

fn check_one(place: &Value, at: &str, root: bool) -> Vec<FieldError> {
    let mut schema = Schema::read(place);
    schema.embedded_resource |= root;
    let schema = Arc::new(schema);
    let default = &place["default"];
    let mut pruned = default.clone();
    if !prune_value(&schema, &mut pruned).is_empty() {
        return vec![FieldError::invalid(at, default.clone(), "must not have unknown fields")];
    }
    let mut errors = validate_default(&schema, default);
    for error in &mut errors {
        error.field = match error.field.as_str() {
            "" => at.to_owned(),
            inside if inside.starts_with('[') => format!("{at}{inside}"),
            inside => format!("{at}.{inside}"),
        };
    }
    errors
}
