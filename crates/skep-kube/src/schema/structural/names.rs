//! The names of a CustomResourceDefinition: those that it wants and those that it has.

use serde_json::Value;

use super::super::validate::{kind_problem, label_problem};
use crate::status::FieldError;

/// The names that a definition must say, or that are made from its kind.
const REQUIRED: [&str; 4] = ["plural", "singular", "kind", "listKind"];

/// What is missing from the names that a definition wants.
pub(super) fn check_presence(names: &Value, at: &str) -> Vec<FieldError> {
    let is_missing = |name: &&str| names[name].as_str().unwrap_or_default().is_empty();
    REQUIRED
        .iter()
        .filter(|name| is_missing(name))
        .map(|name| FieldError::required(format!("{at}.{name}"), ""))
        .collect()
}

/// What is wrong with the names that are there.
pub(super) fn check(names: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |name: &str| names[name].as_str().unwrap_or_default();
    for name in REQUIRED {
        let problem = match name {
            _ if text(name).is_empty() => None,
            "kind" | "listKind" => kind_problem(text(name)),
            _ => label_problem(text(name)),
        };
        errors.extend(problem.map(|problem| FieldError::invalid(format!("{at}.{name}"), text(name), problem)));
    }
    check_list(names, "shortNames", at, &mut errors);
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{at}.listKind"), text("listKind"), detail));
    }
    check_list(names, "categories", at, &mut errors);
    errors
}

fn check_list(names: &Value, list: &str, at: &str, errors: &mut Vec<FieldError>) {
    for (index, name) in names[list].as_array().into_iter().flatten().filter_map(Value::as_str).enumerate() {
        if let Some(problem) = label_problem(name) {
            errors.push(FieldError::invalid(format!("{at}.{list}[{index}]"), name, problem));
        }
    }
}
