//! How an object is to be deleted.

use serde_json::{Value, json};

use super::super::exchange::Exchange;
use super::super::metadata;
use super::body;
use super::expected::Expected;
use crate::status::{ApiError, FieldError, Problem, ResourceName};

/// What the client wants to happen with the dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    Foreground,
    Background,
    Orphan,
}

/// What a DELETE request says beyond its path.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub propagation: Option<Propagation>,
    uid: Option<String>,
    resource_version: Option<String>,
    pub dry_run: bool,
}

impl DeleteOptions {
    /// The options are in the body; without a body they are in the query.
    pub fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        Self::read(&if exchange.body.is_empty() { of_query(exchange) } else { of_body(exchange)? })
    }

    /// The options in a document, which may be null.
    pub fn read(document: &Value) -> Result<Self, ApiError> {
        let errors = validate(document);
        if !errors.is_empty() {
            return Err(ApiError::invalid(&ResourceName::new("meta.k8s.io", "DeleteOptions"), "", &errors));
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let orphan = document["orphanDependents"].as_bool();
        Ok(Self {
            grace_period_seconds: document["gracePeriodSeconds"].as_i64(),
            propagation: match (document["propagationPolicy"].as_str(), orphan) {
                (Some("Foreground"), _) => Some(Propagation::Foreground),
                (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
                (Some(_), _) | (None, Some(false)) => Some(Propagation::Background),
                (None, None) => None,
            },
            uid: text(&document["preconditions"]["uid"]),
            resource_version: text(&document["preconditions"]["resourceVersion"]),
            dry_run: document["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
        })
    }

    /// Whether the client means the object in one state of it, and not as it is by then.
    pub fn is_particular(&self) -> bool {
        self.resource_version.is_some()
    }

    /// The same without what the client believes, which has been checked.
    pub fn checked(self) -> Self {
        Self { uid: None, resource_version: None, ..self }
    }

    /// What the client believes about the object must be so.
    pub fn check(&self, exchange: &Exchange, old: &Value) -> Result<(), ApiError> {
        let checks = [
            ("UID", &self.uid, metadata::uid(old), "deleted and then recreated"),
            ("ResourceVersion", &self.resource_version, metadata::text(old, "resourceVersion"), "modified"),
        ];
        for (what, believed, actual, happened) in checks {
            if let Some(believed) = believed.as_ref().filter(|believed| *believed != actual) {
                let why = format!(
                    "the {what} in the precondition ({believed}) does not match the {what} in record ({actual}). The \
                     object might have been {happened}"
                );
                return Err(ApiError::conflict(&exchange.resource.kind_name(), metadata::name(old), &why));
            }
        }
        Ok(())
    }
}

fn of_query(exchange: &Exchange) -> Value {
    let options = &exchange.options;
    json!({
        "gracePeriodSeconds": options.grace_period_seconds,
        "propagationPolicy": options.propagation_policy,
        "orphanDependents": options.orphan_dependents,
        "dryRun": if options.dry_run { json!(["All"]) } else { Value::Null },
    })
}

fn of_body(exchange: &Exchange) -> Result<Value, ApiError> {
    let refuse = |problem| ApiError::bad_request(problem);
    let expected = Expected::delete_options();
    let decoded = body::decode(&exchange.body, exchange.content_type(), &expected)?;
    let mut decoded = decoded.map_err(|misread| refuse(misread.problem))?;
    let read = expected.check(&mut decoded.value, &decoded.numbers, String::new);
    read.map_err(|misread| refuse(misread.problem))?;
    Ok(decoded.value)
}

fn validate(options: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = options["propagationPolicy"].as_str();
    if let (Some(policy), Some(_)) = (policy, options["orphanDependents"].as_bool()) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy, detail));
    }
    let known = ["Foreground", "Background", "Orphan"];
    if let Some(policy) = policy.filter(|policy| !known.contains(policy)) {
        let detail = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
        errors.push(FieldError::new("propagationPolicy", Problem::NotSupported(policy.into()), detail));
    }
    let stages = options["dryRun"].as_array();
    if stages.is_some_and(|stages| stages.iter().any(|stage| stage != "All")) {
        let problem = Problem::NotSupported(options["dryRun"].clone());
        errors.push(FieldError::new("dryRun", problem, "supported values: \"All\""));
    }
    errors
}
