//! PATCH with an applied configuration: server-side apply.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::Value;

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::options::FieldValidation;
use super::super::read;
use super::super::registry::Origin;
use super::create::create_object;
use super::delete::finalize;
use super::draft::{self, Ownership};
use super::update::{check_revision, revision};
use super::{Attempts, body, now};
use crate::apply::{self, ApplyError};
use crate::decode::{Decoded, decode_object};
use crate::go_text::type_name;
use crate::patch;
use crate::status::ApiError;
use crate::yaml;

pub async fn apply(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let configuration = read(exchange)?;
    check_type(&configuration, &exchange.api_version(), &exchange.resource.kind)?;
    let manager = draft::manager(exchange);
    let subresource = exchange.path.subresource.clone().unwrap_or_default();
    let key = read::key(exchange, exchange.name());
    let mut attempts = Attempts::start();
    loop {
        let Some(record) = state.store.get(&key) else {
            if !subresource.is_empty() {
                return Err(ApiError::not_found(&exchange.resource.name(), exchange.name()));
            }
            let object = merge(exchange, None, &configuration, &manager, "", ApiError::from)?;
            check_is_meant_to_be_new(exchange, &object)?;
            let mut object = identified(exchange, object)?;
            revision(&object)?;
            metadata::set(&mut object, "resourceVersion", None);
            match create_object(state, exchange, object, Ownership::Settled).await {
                // Somebody else was faster: merge into what they made.
                Err(error) if attempts.go_on(&error) => {
                    attempts.take_turn(&state.queues, &key).await;
                    continue;
                }
                created => return Ok(exchange.reply_object(StatusCode::CREATED, &created?)),
            }
        };
        let old = read::load(exchange, &record)?;
        let new = merge(exchange, Some(&old), &configuration, &manager, &subresource, ApiError::from)?;
        let new = identified(exchange, new)?;
        check_revision(exchange, &new, &old)?;
        let draft = draft::finish(state, exchange, new, Some((&record, &old)), &subresource, Ownership::Settled)?;
        match finalize(state, exchange, draft).await {
            Err(error) if attempts.go_on(&error) => attempts.take_turn(&state.queues, &key).await,
            applied => return Ok(exchange.reply_object(StatusCode::OK, &applied?)),
        }
    }
}

/// Reads the configuration, YAML or JSON.
pub(super) fn read(exchange: &mut Exchange) -> Result<Value, ApiError> {
    let malformed = |problem: String| ApiError::bad_request(format!("error decoding YAML: {problem}"));
    // JSON is YAML that is read faster. What is odd about it is told as in any YAML.
    let json = decode_object(&exchange.body).ok().filter(|decoded| decoded.duplicates.is_empty());
    let yaml::Document { value, duplicates } = match (json, std::str::from_utf8(&exchange.body)) {
        (Some(Decoded { value, .. }), _) => Ok(yaml::Document { value, duplicates: Vec::new() }),
        (None, Ok(text)) => yaml::read(text),
        (None, Err(_)) => Err(yaml::NOT_TEXT.to_owned()),
    }
    .map_err(|error| malformed(format!("error converting YAML to JSON: {error}")))?;
    match exchange.options.field_validation {
        FieldValidation::Strict if !duplicates.is_empty() => {
            let problem = yaml::strictly(&duplicates);
            let message = format!("error strict decoding YAML: error converting YAML to JSON: {problem}");
            return Err(ApiError::bad_request(message));
        }
        FieldValidation::Warn => exchange.warn(duplicates),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        other => Err(malformed(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type \
             map[string]interface {{}}",
            type_name(&other)
        ))),
    }
}

pub(super) fn check_type(configuration: &Value, api_version: &str, kind: &str) -> Result<(), ApiError> {
    if configuration["apiVersion"] == api_version && configuration["kind"] == kind {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("invalid object type: {}", apply::describe_kind(configuration))))
}

pub(super) fn merge(
    exchange: &Exchange,
    old: Option<&Value>,
    configuration: &Value,
    manager: &str,
    subresource: &str,
    refuse: impl FnOnce(ApplyError) -> ApiError,
) -> Result<Value, ApiError> {
    let force = exchange.options.force.unwrap_or_default();
    let merged = draft::with_target(exchange, subresource, |target| {
        apply::apply(target, old, configuration, manager, force, &now())
    })?;
    let mut merged = merged.map_err(refuse)?;
    if let Origin::BuiltIn(_) = exchange.resource.origin {
        patch::convert(&mut merged, &exchange.version()?.schema)
            .map_err(|problem| apply::unconvertible(&merged, problem))?;
    }
    Ok(merged)
}

/// Who names an object by its uid does not want another one.
fn check_is_meant_to_be_new(exchange: &Exchange, object: &Value) -> Result<(), ApiError> {
    let uid = metadata::uid(object);
    if uid.is_empty() {
        return Ok(());
    }
    let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
    Err(ApiError::conflict(&exchange.resource.name(), exchange.name(), &why))
}

/// The merged object, when it is the one that the path names.
fn identified(exchange: &Exchange, mut object: Value) -> Result<Value, ApiError> {
    body::check_name(exchange, &object)?;
    body::check_namespace(exchange, &mut object)?;
    Ok(object)
}
