//! POST to `pods/NAME/binding`: a scheduler's decision.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::{metadata, read};
use super::draft::{self, Draft};
use super::expected::Expected;
use super::update::{check_uid, mistaken};
use super::{Attempts, body, conditions};
use crate::status::{ApiError, FieldError, Problem, Reason, ResourceName};

pub async fn bind(state: &State, exchange: &Exchange) -> Result<Response<Body>, ApiError> {
    let mut binding = body::read(exchange, &Expected::binding())?.value;
    body::check_namespace(exchange, &mut binding)?;
    if metadata::name(&binding) != exchange.name() {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    let errors = validate(&binding);
    if !errors.is_empty() {
        // The real server takes these for a mistake of its own.
        return Err(ApiError::new(Reason::Unknown, FieldError::list(&errors)));
    }
    let attempts = Attempts::start();
    loop {
        match bind_once(state, exchange, &binding).await {
            Err(error) if attempts.go_on(&error) => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(exchange.reply_value(StatusCode::CREATED, &success())),
        }
    }
}

/// What is said when there is nothing to show.
pub fn success() -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 })
}

fn validate(binding: &Value) -> Vec<FieldError> {
    let text = |member: &str| binding["target"][member].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(text("kind"), "" | "Node") {
        let problem = Problem::NotSupported(text("kind").into());
        errors.push(FieldError::new("target.kind", problem, "supported values: \"Node\", \"<empty>\""));
    }
    if text("name").is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    errors
}

async fn bind_once(state: &State, exchange: &Exchange, binding: &Value) -> Result<(), ApiError> {
    let record = read::find(state, exchange)?;
    let mut pod = read::load(exchange, &record)?;
    check_uid(exchange, binding, &pod)?;
    let (believed, actual) = (metadata::text(binding, "resourceVersion"), record.revision.to_string());
    if !believed.is_empty() && believed != actual {
        return Err(mistaken(exchange, "ResourceVersion", believed, &actual));
    }
    check_is_free(exchange, &pod)?;
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    for member in ["annotations", "labels"] {
        for (key, value) in binding["metadata"][member].as_object().into_iter().flatten() {
            pod["metadata"][member][key] = value.clone();
        }
    }
    conditions::hold(&mut pod, "PodScheduled", None);
    metadata::set(&mut pod, "resourceVersion", None);
    draft::store(state, exchange, Draft::of(pod, record)).await.map(drop)
}

/// Whether a pod can be given to a node.
fn check_is_free(exchange: &Exchange, pod: &Value) -> Result<(), ApiError> {
    let name = exchange.name();
    let node = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
    let why = if metadata::is_being_deleted(pod) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if let Some(node) = node {
        format!("pod {name} is already assigned to node {node:?}")
    } else if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(ApiError::conflict(&ResourceName::new("", "pods/binding"), name, &why))
}
