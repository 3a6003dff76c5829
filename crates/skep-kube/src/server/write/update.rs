//! PUT of an object or of its status.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::Value;

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read;
use super::super::registry::Origin;
use super::body;
use super::delete::finalize;
use super::draft::{self, Ownership};
use crate::status::{ApiError, FieldError};

pub async fn update(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let new = body::object(exchange)?;
    check_name(exchange, &new)?;
    let record = read::find(state, exchange)?;
    let old = read::load(exchange, &record)?;
    check_preconditions(exchange, &new, &old)?;
    let manager = draft::manager(exchange);
    let subresource = exchange.path.subresource.clone().unwrap_or_default();
    let draft = draft::finish(
        state,
        exchange,
        new,
        Some((&record, &old)),
        &subresource,
        Ownership::Update { manager: &manager },
    )?;
    let updated = finalize(state, exchange, draft).await?;
    Ok(exchange.reply_object(StatusCode::OK, &updated))
}

fn check_name(exchange: &Exchange, new: &Value) -> Result<(), ApiError> {
    let (given, expected) = (metadata::name(new), exchange.name());
    if given == expected {
        return Ok(());
    }
    if given.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({expected} based on URL) was undeterminable: name must be provided"
        )));
    }
    Err(ApiError::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({expected})"
    )))
}

/// What the writer believes about the object must be so.
pub fn check_preconditions(exchange: &Exchange, new: &Value, old: &Value) -> Result<(), ApiError> {
    let (believed, actual) = (metadata::text(new, "resourceVersion"), metadata::text(old, "resourceVersion"));
    if believed.is_empty() {
        if exchange.resource.origin == Origin::Custom {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(ApiError::invalid(&exchange.resource.name(), exchange.name(), &[error]));
        }
    } else if believed != actual {
        return Err(ApiError::modified(&exchange.resource.name(), exchange.name()));
    }
    let (believed, actual) = (metadata::uid(new), metadata::uid(old));
    if !believed.is_empty() && believed != actual {
        let why = format!("Precondition failed: UID in precondition: {believed}, UID in object meta: {actual}");
        return Err(ApiError::conflict(&exchange.resource.name(), exchange.name(), &why));
    }
    Ok(())
}
