//! Custom objects: what their schemas say.

use serde_json::{Value, json};

use super::super::super::aside::aside;
use super::super::super::exchange::Exchange;
use super::super::super::metadata;
use super::super::super::registry::Version;
use super::{Ownership, refuse, set_member};
use crate::builtin::{self, Finalizers};
use crate::names::{NameRule, finalizer_warnings};
use crate::schema::{self, Schema, apply_defaults, fill_defaults, settle_embedded};
use crate::status::ApiError;

/// What a body leaves out, or says in more words than needed. What an apply has merged is not a body: a null in it,
/// which a map that it has emptied is, too, is there for validation to refuse, as on the real server.
pub(super) fn default(schema: &Schema, new: &mut Value, ownership: Ownership<'_>) {
    if let Ownership::Settled = ownership {
        fill_defaults(schema, new);
    } else {
        settle_embedded(schema, new);
        apply_defaults(schema, new);
    }
}

/// A custom object is what its schema says.
pub(super) fn finish(
    exchange: &Exchange,
    new: &mut Value,
    old: Option<&Value>,
    subresource: &str,
    ownership: Ownership<'_>,
) -> Result<(), ApiError> {
    if old.is_none() && exchange.resource.is_terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(&exchange.resource.name(), metadata::name(new), why));
    }
    separate(exchange, new, old, subresource)?;
    let version = exchange.version()?;
    default(&version.schema, new, ownership);
    let mut errors = match old {
        None => builtin::validate_metadata(new, NameRule::Dns1123Subdomain, Finalizers::Any),
        Some(old) => {
            let mut errors = builtin::validate_any_update(new, old);
            errors.extend(builtin::validate_metadata_update(new, old, Finalizers::Any));
            errors
        }
    };
    if let Some(compiled) = &version.compiled {
        let validate = || match old.filter(|_| subresource == "status") {
            Some(old) => schema::validate_status(compiled, new, old),
            None => schema::validate(compiled, new, old),
        };
        errors.extend(if compiled.has_rules() { aside(validate) } else { validate() });
    }
    refuse(exchange, new, &errors)?;
    exchange.warn(finalizer_warnings(&metadata::finalizers(new), &old.map(metadata::finalizers).unwrap_or_default()));
    count_generation(exchange, new, old, subresource);
    // As it will be read.
    settle_embedded(&version.schema, new);
    exchange.resource.reshape(version, new);
    Ok(())
}

/// The status is written through its own path and everything else through the object's.
fn separate(exchange: &Exchange, new: &mut Value, old: Option<&Value>, subresource: &str) -> Result<(), ApiError> {
    let has_status = exchange.version()?.has_status();
    if !has_status {
        return Ok(());
    }
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    if subresource == "status" {
        let Some(old) = old else {
            return Ok(());
        };
        let status = new.get("status").cloned();
        let managed = new["metadata"].get("managedFields").cloned();
        *new = Value::Object(members(old));
        metadata::set(new, "resourceVersion", None);
        metadata::set(new, "managedFields", managed);
        set_member(new, "status", status);
        return Ok(());
    }
    set_member(new, "status", old.and_then(|old| old.get("status").cloned()));
    Ok(())
}

/// The generation counts changes of what is wanted, not of what is.
fn count_generation(exchange: &Exchange, new: &mut Value, old: Option<&Value>, subresource: &str) {
    let generation = match old {
        None => 1,
        Some(old) if subresource != "status" && wanted(old, exchange) != wanted(new, exchange) => {
            metadata::generation(old).wrapping_add(1)
        }
        Some(old) => metadata::generation(old),
    };
    metadata::set(new, "generation", Some(json!(generation)));
}

/// Everything but metadata and, where it is a part of its own, status.
fn wanted(object: &Value, exchange: &Exchange) -> Value {
    let mut object = object.clone();
    let has_status = exchange.version().is_ok_and(Version::has_status);
    if let Some(members) = object.as_object_mut() {
        members.remove("metadata");
        if has_status {
            members.remove("status");
        }
    }
    object
}
