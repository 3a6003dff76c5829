//! The reviews that others ask for: may somebody do something, what may I do, who am I, whose token is this.
//!
//! Each is a document in and a document out; nothing is stored.

mod access;
mod identity;
mod rules;
#[cfg(test)]
mod tests;

pub use access::{local_subject_access_review, self_subject_access_review, subject_access_review};
pub use identity::{self_subject_review, token_review};
pub use rules::self_subject_rules_review;

use serde_json::{Value, json};

const AUTHORIZATION_VERSION: &str = "authorization.k8s.io/v1";
const AUTHENTICATION_VERSION: &str = "authentication.k8s.io/v1";

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The metadata of a review: what came with it.
fn metadata(review: &Value) -> Value {
    review.get("metadata").filter(|metadata| metadata.is_object()).cloned().unwrap_or_else(|| json!({}))
}

/// Removes what counts as absent on the wire, without looking deeper than one level.
fn without_empty(value: &Value) -> Value {
    let Some(fields) = value.as_object() else {
        return json!({});
    };
    let present = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    let kept = fields.iter().filter(|(_, value)| present(value));
    Value::Object(kept.map(|(field, value)| (field.clone(), value.clone())).collect())
}
