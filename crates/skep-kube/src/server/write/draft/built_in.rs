//! Built-in objects: what the server knows about their kinds.

use serde_json::Value;

use super::super::super::admission::Promise;
use super::super::super::exchange::Exchange;
use super::super::super::{State, crd, nodes};
use super::super::now;
use super::{refuse, set_member};
use crate::auth::rbac;
use crate::builtin::{self, Builtin};
use crate::schema;
use crate::status::{ApiError, FieldError};

/// A built-in object is what the server knows about its kind.
pub(super) fn finish(
    state: &State,
    exchange: &Exchange,
    kind: &Builtin,
    new: &mut Value,
    old: Option<&Value>,
    subresource: &str,
) -> Result<Option<Promise>, ApiError> {
    nodes::restrict(exchange, old, new, subresource)?;
    if kind.kind == "Service"
        && let Some(old) = old
    {
        builtin::settle_service(new, old);
    }
    let mut promise = None;
    let errors = match (old, subresource) {
        (None, _) => {
            state.admit(exchange, kind, new)?;
            builtin::prepare_create(kind, new, &now());
            let errors = builtin::validate_create(kind, new);
            allocated(state, kind, new, None, errors, &mut promise)
        }
        (Some(old), "status") => {
            builtin::prepare_status_update(kind, new, old);
            builtin::validate_status_update(kind, new, old)
        }
        (Some(old), "ephemeralcontainers") => {
            builtin::prepare_ephemeral_update(kind, new, old);
            builtin::validate_ephemeral_update(kind, new, old)
        }
        (Some(old), "finalize") => {
            let spec = new.get("spec").cloned();
            builtin::prepare_update(kind, new, old);
            set_member(new, "spec", spec);
            Vec::new()
        }
        (Some(old), _) => {
            if kind.kind == "Pod" {
                builtin::admit_pod(new);
            }
            builtin::prepare_update(kind, new, old);
            let errors = builtin::validate_update(kind, new, old);
            allocated(state, kind, new, Some(old), errors, &mut promise)
        }
    };
    let mut errors = errors;
    errors.extend(definition_errors(exchange, new, old, subresource));
    refuse(exchange, new, &errors)?;
    state.admit_valid(exchange, kind, new, old.is_none())?;
    if subresource.is_empty() {
        exchange.warn(builtin::warnings(kind, new));
    }
    if crd::is_definition(&exchange.resource) {
        exchange.warn(schema::structural::format_warnings(new, old));
    }
    if exchange.resource.group == rbac::GROUP {
        state.access.check_escalation(&exchange.user, old, new)?;
    }
    builtin::canonical(kind, new);
    Ok(promise)
}

/// What is wrong with a definition beyond what can be wrong with any object.
fn definition_errors(exchange: &Exchange, new: &Value, old: Option<&Value>, subresource: &str) -> Vec<FieldError> {
    match subresource {
        _ if !crd::is_definition(&exchange.resource) => Vec::new(),
        "status" => schema::structural::check_status(new),
        _ => schema::structural::check(new, old),
    }
}

/// Gives out addresses and ports, to an object that is fine otherwise.
fn allocated(
    state: &State,
    kind: &Builtin,
    new: &mut Value,
    old: Option<&Value>,
    mut errors: Vec<FieldError>,
    promise: &mut Option<Promise>,
) -> Vec<FieldError> {
    if errors.is_empty() {
        match state.allocate(kind, new, old) {
            Ok(given) => *promise = given,
            Err(error) => errors.push(error),
        }
    }
    errors
}
