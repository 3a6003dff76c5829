//! The forms in which objects are shown: whole, as rows of a table, or by their metadata alone.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::codec;
use super::exchange::Exchange;
use super::negotiate::Form;
use super::read::{is_shown_as_stored, load, shown};
use super::registry::{Origin, Version};
use crate::builtin::{self, Builtin};
use crate::status::{ApiError, FieldError, Reason};
use crate::store::Record;

/// A list to show.
#[derive(Debug)]
pub struct Items {
    pub records: Vec<Arc<Record>>,
    pub revision: u64,
    pub continue_: Option<String>,
    pub remaining: Option<usize>,
}

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
            let mut table = table(exchange, std::slice::from_ref(object), true)?;
            // A rehearsed object has no version.
            if let Some(version) = object["metadata"].get("resourceVersion") {
                table["metadata"] = json!({ "resourceVersion": version });
            }
            Ok(table)
        }
    }
}

fn not_acceptable(message: &str) -> ApiError {
    ApiError::new(Reason::NotAcceptable, message)
}

/// What the real server calls the type in which it holds an object or a list.
fn type_name(exchange: &Exchange, is_list: bool) -> String {
    let list = if is_list { "List" } else { "" };
    match exchange.resource.origin {
        Origin::Custom => format!("unstructured.Unstructured{list}"),
        Origin::BuiltIn(kind) => format!("{}.{}{list}", kind.package(), kind.kind),
    }
}

/// A list in the form that the request asks for.
pub fn many(exchange: &Exchange, items: &Items) -> Result<Bytes, ApiError> {
    match exchange.answer.form {
        Form::Object => objects(exchange, items),
        Form::PartialMetadata => Err(not_acceptable(&format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*{})",
            type_name(exchange, true)
        ))),
        Form::PartialMetadataList => {
            let listed: Vec<Value> = items
                .records
                .iter()
                .map(|record| Ok(partial(exchange, &load(exchange, record)?)))
                .collect::<Result<_, ApiError>>()?;
            let list = json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": exchange.answer.form_version,
                "metadata": list_metadata(items),
                "items": listed,
            });
            Ok(list.to_string().into())
        }
        Form::Table => {
            let objects: Vec<Value> =
                items.records.iter().map(|record| load(exchange, record)).collect::<Result<_, _>>()?;
            let mut table = table(exchange, &objects, true)?;
            table["metadata"] = list_metadata(items);
            Ok(table.to_string().into())
        }
    }
}

/// Whole objects are written one after the other, without being parsed.
fn objects(exchange: &Exchange, items: &Items) -> Result<Bytes, ApiError> {
    let api_version = exchange.api_version();
    let shown = shown(&api_version, exchange);
    let size: usize = items.records.iter().map(|record| record.object.len() + 128).sum();
    let mut output = Vec::with_capacity(size + 256);
    let mut metadata = list_metadata(items);
    // The list of a custom resource says even that nothing follows.
    if exchange.resource.origin == Origin::Custom && items.continue_.is_none() {
        metadata["continue"] = "".into();
    }
    let head = json!({ "apiVersion": api_version, "kind": exchange.resource.list_kind, "metadata": metadata });
    let head = head.to_string();
    output.extend_from_slice(head.trim_end_matches('}').as_bytes());
    // The trim may have taken the brace of the metadata too.
    output.extend(std::iter::repeat_n(b'}', head.len() - head.trim_end_matches('}').len() - 1));
    output.extend_from_slice(b",\"items\":[");
    for (index, record) in items.records.iter().enumerate() {
        if index > 0 {
            output.push(b',');
        }
        match exchange.resource.origin {
            Origin::Custom if !is_shown_as_stored(exchange, record) => {
                output.extend_from_slice(load(exchange, record)?.to_string().as_bytes());
            }
            Origin::Custom => codec::serve(record, record.revision, shown, &mut output),
            // A typed list says once what its items are.
            Origin::BuiltIn(_) if exchange.resource.is_second_face_of_events() => {
                let mut object = load(exchange, record)?;
                if let Some(members) = object.as_object_mut() {
                    members.retain(|name, _| name != "apiVersion" && name != "kind");
                }
                output.extend_from_slice(object.to_string().as_bytes());
            }
            Origin::BuiltIn(_) => codec::serve_bare(record, &mut output),
        }
    }
    output.extend_from_slice(b"]}");
    Ok(output.into())
}

/// One object, without parsing it where it is stored as it is shown.
fn whole(exchange: &Exchange, record: &Record) -> Result<Bytes, ApiError> {
    if !is_shown_as_stored(exchange, record) {
        return Ok(load(exchange, record)?.to_string().into());
    }
    Ok(codec::served(record, shown(&exchange.api_version(), exchange)))
}

fn list_metadata(items: &Items) -> Value {
    let mut metadata = json!({ "resourceVersion": items.revision.to_string() });
    if let Some(continue_) = &items.continue_ {
        metadata["continue"] = continue_.as_str().into();
    }
    if let Some(remaining) = items.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

/// An object with nothing but its metadata.
pub fn partial(exchange: &Exchange, object: &Value) -> Value {
    let api_version = exchange.answer.form_version;
    json!({ "kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": object["metadata"] })
}

/// Objects as rows. The definitions of the columns can be left out, as in all events of a watch but the first.
pub fn table(exchange: &Exchange, objects: &[Value], with_columns: bool) -> Result<Value, ApiError> {
    let version = exchange.version()?;
    let now = time::OffsetDateTime::now_utc();
    let cells = |object: &Value| match exchange.resource.origin {
        Origin::BuiltIn(kind) => builtin::row(kind, object, now),
        Origin::Custom => custom_cells(version, object),
    };
    let included = Included::of(exchange)?;
    let shown = |object: &Value| match included {
        Included::Nothing => Value::Null,
        Included::Object => object.clone(),
        Included::Metadata => partial(exchange, object),
    };
    let rows: Vec<Value> =
        objects.iter().map(|object| json!({ "cells": cells(object), "object": shown(object) })).collect();
    let has_rows = match exchange.resource.origin {
        Origin::BuiltIn(kind) => builtin::has_own_columns(kind),
        Origin::Custom => true,
    };
    // A kind without columns of its own has no rows rather than an empty number of them.
    let rows = if rows.is_empty() && !has_rows { Value::Null } else { rows.into() };
    let columns = match exchange.resource.origin {
        _ if !with_columns => Value::Null,
        Origin::BuiltIn(kind) => builtin_columns(kind),
        Origin::Custom => custom_columns(version),
    };
    Ok(json!({
        "kind": "Table",
        "apiVersion": exchange.answer.form_version,
        "metadata": {},
        "columnDefinitions": columns,
        "rows": rows,
    }))
}

/// What the rows of a table carry of their objects.
#[derive(Debug, Clone, Copy)]
enum Included {
    Nothing,
    Metadata,
    Object,
}

impl Included {
    fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        match exchange.options.include_object.as_deref() {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::Nothing),
            Some("Object") => Ok(Self::Object),
            Some(other) => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid("includeObject", other, detail);
                Err(ApiError::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// Whether what the query says about the form of an answer makes sense; the answers themselves find out as they are
/// made, but a watch has to know before.
pub fn check_form(exchange: &Exchange) -> Result<(), ApiError> {
    if exchange.answer.form == Form::Table {
        Included::of(exchange)?;
    }
    Ok(())
}

fn builtin_columns(kind: &Builtin) -> Value {
    let definition = |column: builtin::Column| {
        json!({
            "name": column.name, "type": column.type_, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    };
    builtin::columns(kind).into_iter().map(definition).collect()
}

/// The first column of every custom resource; its description is that of the field.
fn custom_columns(version: &Version) -> Value {
    let named = builtin::find("", "v1", "ConfigMap").map(builtin::columns).unwrap_or_default();
    let about_names = named.into_iter().next().map(|column| column.description).unwrap_or_default();
    let mut columns = vec![json!({
        "name": "Name", "type": "string", "format": "name", "priority": 0, "description": about_names,
    })];
    columns.extend(version.columns.iter().map(|column| {
        json!({
            "name": column.name, "type": column.type_, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    }));
    columns.into()
}

fn custom_cells(version: &Version, object: &Value) -> Vec<Value> {
    let mut cells = vec![object["metadata"]["name"].clone()];
    cells.extend(version.columns.iter().map(|column| column.cell(object)));
    cells
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
