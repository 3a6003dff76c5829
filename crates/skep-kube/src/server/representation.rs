//! The forms in which objects are shown: whole, as rows of a table, or by their metadata alone.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::codec;
use super::exchange::Exchange;
use super::negotiate::Form;
use super::read::{is_shown_as_stored, load, shown};
use super::registry::Origin;
use super::table::{self, Rows};
use crate::builtin;
use crate::status::{ApiError, Reason};
use crate::store::Record;

/// One object in the form that the request asks for.
pub fn one(exchange: &Exchange, record: &Record) -> Result<Bytes, ApiError> {
    match exchange.answer.form {
        Form::Object => whole(exchange, record),
        _ => Ok(of_object(exchange, &load(exchange, record)?)?.to_string().into()),
    }
}

/// An object that has been read, in the form that the request asks for.
pub fn of_object(exchange: &Exchange, object: &Value) -> Result<Value, ApiError> {
    match exchange.answer.form {
        Form::Object => Ok(object.clone()),
        Form::PartialMetadata => Ok(partial(exchange, object)),
        Form::PartialMetadataList => Err(not_acceptable(&format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list (*{})",
            type_name(exchange, false)
        ))),
        Form::Table => {
            let mut table = table::of_one(exchange, object.clone(), true)?;
            // A rehearsed object has no version.
            if let Some(version) = object["metadata"].get("resourceVersion") {
                table["metadata"] = json!({ "resourceVersion": version });
            }
            Ok(table)
        }
    }
}

pub fn not_acceptable(message: &str) -> ApiError {
    ApiError::new(Reason::NotAcceptable, message)
}

/// What the real server calls the type in which it holds an object or a list.
pub fn type_name(exchange: &Exchange, is_list: bool) -> String {
    let list = if is_list { "List" } else { "" };
    match exchange.resource.origin {
        Origin::Custom => format!("unstructured.Unstructured{list}"),
        Origin::BuiltIn(kind) => format!("{}.{}{list}", kind.package(), kind.kind),
    }
}

/// One object, without parsing it where it is stored as it is shown.
fn whole(exchange: &Exchange, record: &Record) -> Result<Bytes, ApiError> {
    if !is_shown_as_stored(exchange, record) {
        return Ok(load(exchange, record)?.to_string().into());
    }
    Ok(codec::served(record, shown(&exchange.api_version(), exchange)))
}

/// An object with nothing but its metadata.
pub fn partial(exchange: &Exchange, object: &Value) -> Value {
    let api_version = exchange.answer.form_version;
    json!({ "kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": object["metadata"] })
}

/// Whether what the query says about the form of an answer makes sense; the answers themselves find out as they are
/// made, but a watch has to know before.
pub fn check_form(exchange: &Exchange) -> Result<(), ApiError> {
    if exchange.answer.form == Form::Table {
        Rows::of(exchange)?;
    }
    Ok(())
}

/// An empty object of the kind that is watched, for bookmarks.
pub fn bookmark(exchange: &Exchange, revision: u64, ends_initial_events: bool) -> Value {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), revision.to_string().into());
    if ends_initial_events {
        metadata.insert("annotations".into(), json!({ "k8s.io/initial-events-end": "true" }));
    }
    let mut object =
        json!({ "apiVersion": exchange.api_version(), "kind": exchange.resource.kind, "metadata": metadata });
    if let Origin::BuiltIn(kind) = exchange.resource.origin {
        builtin::canonical(kind, &mut object);
    }
    object
}
