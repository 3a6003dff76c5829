//! SelfSubjectRulesReview: what may I do in this namespace.

use serde_json::{Value, json};

use super::{AUTHORIZATION_VERSION, metadata};
use crate::auth::authorize::{Authorizer, UserRules, joined};
use crate::auth::rbac::Rule;
use crate::auth::user::User;
use crate::status::ApiError;

pub fn self_subject_rules_review(review: &Value, user: &User, authorizer: &dyn Authorizer) -> Result<Value, ApiError> {
    let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let UserRules { rules, incomplete, errors } = authorizer.rules_of(user, namespace);
    let documents = |on_paths: bool| -> Vec<Value> {
        rules.iter().filter(|rule| on_paths != rule.non_resource_urls.is_empty()).map(Rule::document).collect()
    };
    let mut status = json!({
        "resourceRules": documents(false),
        "nonResourceRules": documents(true),
        "incomplete": incomplete,
    });
    if !errors.is_empty() {
        status["evaluationError"] = joined(&errors).into();
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview",
        "apiVersion": AUTHORIZATION_VERSION,
        "metadata": metadata(review),
        // The real server does not repeat the namespace.
        "spec": {},
        "status": status,
    }))
}
