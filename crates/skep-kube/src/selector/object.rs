//! Label selectors as they stand in objects: `matchLabels` and `matchExpressions`.

use serde_json::Value;

use super::labels::{LabelSelector, LabelSelectorError, Operator, Requirement};
use crate::names::{label_key, label_value, validate_labels};
use crate::status::FieldError;

impl LabelSelector {
    /// Reads a LabelSelector object. An empty one selects everything, a missing one nothing.
    pub fn from_object(object: &Value) -> Result<Self, LabelSelectorError> {
        let Some(object) = object.as_object() else { return Ok(Self::nothing()) };
        let mut requirements = Vec::new();
        for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            requirements.push(Requirement::new(key, Operator::Equals, vec![text(value)])?);
        }
        for expression in object.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let name = expression["operator"].as_str().unwrap_or_default();
            let operator = operator(name).ok_or_else(|| {
                LabelSelectorError::Requirement(format!(
                    "{} is not a valid label selector operator",
                    crate::go_text::quoted(name)
                ))
            })?;
            let values = expression["values"].as_array().into_iter().flatten().map(text).collect();
            requirements.push(Requirement::new(&text(&expression["key"]), operator, values)?);
        }
        Ok(Self::new(requirements))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn operator(name: &str) -> Option<Operator> {
    match name {
        "In" => Some(Operator::In),
        "NotIn" => Some(Operator::NotIn),
        "Exists" => Some(Operator::Exists),
        "DoesNotExist" => Some(Operator::DoesNotExist),
        _ => None,
    }
}

/// What is wrong with a LabelSelector object, field by field.
pub fn validate_label_selector(selector: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(labels) = selector["matchLabels"].as_object() {
        errors.extend(validate_labels(labels, &format!("{field}.matchLabels")));
    }
    for (index, expression) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        validate_expression(expression, &format!("{field}.matchExpressions[{index}]"), &mut errors);
    }
    errors
}

fn validate_expression(expression: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let values: Vec<&str> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let name = expression["operator"].as_str().unwrap_or_default();
    match operator(name) {
        Some(Operator::In | Operator::NotIn) if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{field}.values"), detail));
        }
        Some(Operator::Exists | Operator::DoesNotExist) if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{field}.values"), detail));
        }
        Some(_) => {}
        None => errors.push(FieldError::invalid(format!("{field}.operator"), name, "not a valid selector operator")),
    }
    let key = expression["key"].as_str().unwrap_or_default();
    errors.extend(
        label_key(key).into_iter().map(|complaint| FieldError::invalid(format!("{field}.key"), key, complaint)),
    );
    for (index, value) in values.into_iter().enumerate() {
        let field = format!("{field}.values[{index}]");
        errors.extend(label_value(value).into_iter().map(|complaint| FieldError::invalid(&field, value, complaint)));
    }
}
