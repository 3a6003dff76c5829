//! Objects as rows of a table, which is what `kubectl get` asks for.

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::exchange::Exchange;
use super::registry::{Origin, Version};
use super::representation::partial;
use crate::builtin::{self, Builtin};
use crate::status::{ApiError, FieldError};

/// What the rows of a table carry of their objects.
#[derive(Debug, Clone, Copy)]
enum Included {
    Nothing,
    Metadata,
    Object,
}

/// How objects become rows.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    included: Included,
    now: OffsetDateTime,
}

impl Rows {
    /// Fails when what the query says about rows makes no sense.
    pub fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        let included = match exchange.options.include_object.as_deref() {
            None | Some("Metadata") => Included::Metadata,
            Some("None") => Included::Nothing,
            Some("Object") => Included::Object,
            Some(other) => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = FieldError::invalid("includeObject", other, detail);
                return Err(ApiError::bad_request(format!("Unable to convert to Table as requested: {error}")));
            }
        };
        Ok(Self { included, now: OffsetDateTime::now_utc() })
    }

    pub fn row(&self, exchange: &Exchange, object: Value) -> Result<Value, ApiError> {
        let cells = match exchange.resource.origin {
            Origin::BuiltIn(kind) => builtin::row(kind, &object, self.now),
            Origin::Custom => custom_cells(exchange.version()?, &object),
        };
        let shown = match self.included {
            Included::Nothing => Value::Null,
            Included::Object => object,
            Included::Metadata => partial(exchange, &object),
        };
        Ok(json!({ "cells": cells, "object": shown }))
    }
}

/// A table of one object. The definitions of the columns can be left out, as in all events of a watch but the first.
pub fn of_one(exchange: &Exchange, object: Value, with_columns: bool) -> Result<Value, ApiError> {
    let mut table = head(exchange, with_columns)?;
    table["rows"] = json!([Rows::of(exchange)?.row(exchange, object)?]);
    Ok(table)
}

/// A table but for its rows.
pub fn head(exchange: &Exchange, with_columns: bool) -> Result<Value, ApiError> {
    let columns = match exchange.resource.origin {
        _ if !with_columns => Value::Null,
        Origin::BuiltIn(kind) => builtin_columns(kind),
        Origin::Custom => custom_columns(exchange.version()?),
    };
    Ok(json!({
        "kind": "Table",
        "apiVersion": exchange.answer.form_version,
        "metadata": {},
        "columnDefinitions": columns,
    }))
}

/// A kind without columns of its own has no rows rather than an empty number of them.
pub fn can_be_empty(exchange: &Exchange) -> bool {
    match exchange.resource.origin {
        Origin::BuiltIn(kind) => builtin::has_own_columns(kind),
        Origin::Custom => true,
    }
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
