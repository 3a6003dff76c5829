//! POST to a collection.

use axum::body::Body;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read;
use super::super::registry::Origin;
use super::draft::{self, Ownership};
use super::{body, refused};
use crate::names::{NameRule, generate_name, validate_object_name};
use crate::status::{ApiError, Reason};
use crate::store::{CommitError, Key};

pub async fn create(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let mut object = body::object(exchange)?;
    body::check_namespace(exchange, &mut object)?;
    let manager = draft::manager(exchange);
    let created = create_object(state, exchange, object, Ownership::Update { manager: &manager }).await?;
    Ok(exchange.reply_object(StatusCode::CREATED, &created))
}

/// Creates an object whose body has been read. Whoever asked for a change must be allowed to create, too.
pub async fn create_object(
    state: &State,
    exchange: &Exchange,
    mut object: Value,
    ownership: Ownership<'_>,
) -> Result<Value, ApiError> {
    if !metadata::text(&object, "resourceVersion").is_empty() {
        return Err(ApiError::new(Reason::Unknown, "resourceVersion should not be set on objects to be created"));
    }
    check_namespace_is_alive(state, exchange, metadata::name(&object))?;
    name(exchange, &mut object)?;
    let draft = draft::finish(state, exchange, object, None, "", ownership)?;
    if exchange.method != Method::POST {
        state.authorize_creation(exchange)?;
    }
    let name = metadata::name(&draft.object).to_owned();
    // A rehearsal must notice what the store would.
    if state.store.get(&read::key(exchange, &name)).is_some() {
        return Err(refused(exchange, &name, &CommitError::AlreadyExists));
    }
    draft::store(state, exchange, draft).await
}

/// Objects live in namespaces that exist and are not on their way out.
fn check_namespace_is_alive(state: &State, exchange: &Exchange, name: &str) -> Result<(), ApiError> {
    if !exchange.resource.namespaced {
        return Ok(());
    }
    let namespace = exchange.namespace();
    let resource = crate::status::ResourceName::new("", "namespaces");
    let record = state
        .store
        .get(&Key::new("/namespaces", "", namespace))
        .ok_or_else(|| ApiError::not_found(&resource, namespace))?;
    let object: Value = serde_json::from_slice(&record.object).unwrap_or_default();
    if metadata::is_being_deleted(&object) {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut error = ApiError::forbidden(&exchange.resource.name(), name, &why);
        error.causes.push(crate::status::Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: Some("metadata.namespace".into()),
        });
        return Err(error);
    }
    Ok(())
}

fn name(exchange: &Exchange, object: &mut Value) -> Result<(), ApiError> {
    let base = metadata::text(object, "generateName").to_owned();
    if metadata::name(object).is_empty() && !base.is_empty() {
        metadata::set(object, "name", Some(json!(generate_name(&base))));
    }
    // Built-in kinds have rules of their own, which are checked with everything else.
    if exchange.resource.origin != Origin::Custom && !metadata::name(object).is_empty() {
        return Ok(());
    }
    let errors = validate_object_name(metadata::name(object), &base, NameRule::Dns1123Subdomain);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&exchange.resource.kind_name(), metadata::name(object), &errors))
}
