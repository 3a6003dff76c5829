//! An object on its way into the store: defaulted, validated and given its owners.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::State;
use super::super::admission::Promise;
use super::super::codec;
use super::super::crd;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::nodes;
use super::super::read;
use super::super::registry::{Origin, Version};
use super::{now, refused};
use crate::apply::{self, Ownable, Target};
use crate::auth::rbac;
use crate::builtin::{self, Builtin, Finalizers};
use crate::names::NameRule;
use crate::schema::{self, apply_defaults};
use crate::status::{ApiError, FieldError};
use crate::store::{Change, Key, Record};

/// An object that is ready to be stored. It may be a secret, so it has no `Debug`.
pub struct Draft {
    pub object: Value,
    /// The record that it was made from; none for a new object.
    pub live: Option<Arc<Record>>,
    /// What is kept for it until it is stored.
    promise: Option<Promise>,
}

impl Draft {
    /// The next state of an object that is stored.
    pub fn of(object: Value, live: Arc<Record>) -> Self {
        Self { object, live: Some(live), promise: None }
    }
}

/// Who writes, and to which part of the object.
#[derive(Debug, Clone, Copy)]
pub enum Ownership<'a> {
    /// A write that says what the object is to be: whatever it changes belongs to the writer.
    Update { manager: &'a str },
    /// Server-side apply has settled the owners already.
    Settled,
}

/// Defaults, owns, resets and validates a new or changed object. The order is that of the real server: what admission
/// and the server itself add belongs to nobody, and what is reset is not owned.
pub fn finish(
    state: &State,
    exchange: &Exchange,
    mut new: Value,
    live: Option<(&Arc<Record>, &Value)>,
    subresource: &str,
    ownership: Ownership<'_>,
) -> Result<Draft, ApiError> {
    let old = live.map(|(_, object)| object);
    settle_metadata(&mut new, old);
    match exchange.resource.origin {
        Origin::Custom => apply_defaults(&exchange.version()?.schema, &mut new),
        Origin::BuiltIn(kind) => {
            builtin::default(kind, &mut new);
            builtin::canonical(kind, &mut new);
        }
    }
    if let Ownership::Update { manager } = ownership {
        // A scale is owned without a time.
        let time = if subresource == "scale" { String::new() } else { now() };
        with_target(exchange, subresource, |target| apply::update(target, old, &mut new, manager, &time))?;
    }
    let promise = match exchange.resource.origin {
        Origin::Custom => {
            custom(exchange, &mut new, old, subresource)?;
            None
        }
        Origin::BuiltIn(kind) => built_in(state, exchange, kind, &mut new, old, subresource)?,
    };
    if let Some(old) = old {
        apply::keep_times(old, &mut new);
    }
    Ok(Draft { object: new, live: live.map(|(record, _)| record.clone()), promise })
}

/// What the server alone decides about an object's metadata. What may not change is kept when a request leaves it out;
/// a request that changes it is refused later.
fn settle_metadata(new: &mut Value, old: Option<&Value>) {
    if let Some(old) = old {
        for member in ["creationTimestamp", "generation"] {
            metadata::set(new, member, old["metadata"].get(member).cloned());
        }
        for member in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            let given = &new["metadata"][member];
            if given.is_null() || given == "" {
                metadata::set(new, member, old["metadata"].get(member).cloned());
            }
        }
    } else {
        metadata::set(new, "uid", Some(json!(uuid::Uuid::new_v4().to_string())));
        metadata::set(new, "creationTimestamp", Some(json!(now())));
        for member in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            metadata::set(new, member, None);
        }
    }
    metadata::set(new, "selfLink", None);
    metadata::set(new, "resourceVersion", None);
    builtin::canonical_metadata(new);
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

fn set_member(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(members) = object.as_object_mut() {
        match value {
            Some(value) => {
                members.insert(name.to_owned(), value);
            }
            None => {
                members.remove(name);
            }
        }
    }
}

/// A custom object is what its schema says.
fn custom(exchange: &Exchange, new: &mut Value, old: Option<&Value>, subresource: &str) -> Result<(), ApiError> {
    if old.is_none() && exchange.resource.is_terminating {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(&exchange.resource.name(), metadata::name(new), why));
    }
    separate(exchange, new, old, subresource)?;
    let version = exchange.version()?;
    apply_defaults(&version.schema, new);
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
    count_generation(exchange, new, old, subresource);
    Ok(())
}

/// Does what may take some time without keeping other requests waiting. A runtime of one thread has nobody to take over.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// A built-in object is what the server knows about its kind.
fn built_in(
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
        keep_addresses(new, old);
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
        (Some(old), "finalize") => {
            let spec = new.get("spec").cloned();
            builtin::prepare_update(kind, new, old);
            set_member(new, "spec", spec);
            Vec::new()
        }
        (Some(old), _) => {
            builtin::prepare_update(kind, new, old);
            let errors = builtin::validate_update(kind, new, old);
            allocated(state, kind, new, Some(old), errors, &mut promise)
        }
    };
    let mut errors = errors;
    errors.extend(definition_errors(exchange, new, old, subresource));
    refuse(exchange, new, &errors)?;
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

/// A service that is updated without a word about its addresses keeps them.
fn keep_addresses(new: &mut Value, old: &Value) {
    let has_none = new["spec"]["clusterIP"].as_str().is_none_or(str::is_empty);
    if has_none && new["spec"]["type"] != "ExternalName" && new["spec"].is_object() {
        for member in ["clusterIP", "clusterIPs"] {
            if let Some(value) = old["spec"].get(member) {
                new["spec"][member] = value.clone();
            }
        }
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

fn refuse(exchange: &Exchange, object: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&exchange.resource.kind_name(), metadata::name(object), errors))
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

/// Runs something with what ownership depends on.
pub fn with_target<R>(
    exchange: &Exchange,
    subresource: &str,
    work: impl FnOnce(&Target<'_>) -> R,
) -> Result<R, ApiError> {
    let version = exchange.version()?;
    let versions: Vec<String> =
        exchange.resource.versions.iter().map(|version| exchange.resource.api_version(&version.name)).collect();
    let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
    let ownable = match (subresource, exchange.resource.origin) {
        ("", _) if version.has_status() => Ownable::all_but(&["status"]),
        ("status", Origin::Custom) => Ownable::only(&["status"]),
        ("status", Origin::BuiltIn(kind)) if kind.kind == "Deployment" => {
            Ownable::all_but(&["spec", "metadata.labels"])
        }
        ("status", Origin::BuiltIn(_)) => Ownable::all_but(&["spec"]),
        _ => Ownable::Everything,
    };
    let blank = match exchange.resource.origin {
        Origin::Custom => json!({}),
        Origin::BuiltIn(_) => apply::blank(&version.schema),
    };
    let api_version = exchange.api_version();
    Ok(work(&Target {
        schema: &version.schema,
        api_version: &api_version,
        versions: &versions,
        subresource,
        ownable: &ownable,
        blank: &blank,
    }))
}

/// The name under which a writer owns what it writes.
pub fn manager(exchange: &Exchange) -> String {
    apply::field_manager::manager_of(
        exchange.options.field_manager.as_deref().unwrap_or_default(),
        exchange.user_agent(),
    )
}

/// Stores a draft, unless the request is only a rehearsal. An object that is as it was is not written again.
///
/// Nothing may be done after the commit: a client that hangs up ends the request there. What depends on objects follows
/// the store (see [`crate::store::Follower`]).
pub async fn store(state: &State, exchange: &Exchange, draft: Draft) -> Result<Value, ApiError> {
    // The promise is kept until the end, when the object is stored or will never be.
    let Draft { mut object, live, promise: _promise } = draft;
    let name = metadata::name(&object).to_owned();
    let content = if exchange.resource.is_second_face_of_events() {
        let mut stored = object.clone();
        builtin::event_to_core(&mut stored);
        codec::store(&stored)
    } else {
        codec::store(&object)
    };
    let content = content.map_err(|error| ApiError::internal(&error.to_string()))?;
    if let Some(live) = &live
        && live.object == content.object
    {
        metadata::set(&mut object, "resourceVersion", Some(json!(live.revision.to_string())));
        return Ok(object);
    }
    if exchange.options.dry_run {
        let revision = live.as_ref().map(|live| json!(live.revision.to_string()));
        metadata::set(&mut object, "resourceVersion", revision);
        return Ok(object);
    }
    let key = read::key(exchange, &name);
    let change = match &live {
        None => Change::Create { key, content },
        Some(live) => Change::Update { key, expected: live.revision, content },
    };
    let committed = state.store.commit(change).await.map_err(|error| refused(exchange, &name, &error))?;
    metadata::set(&mut object, "resourceVersion", Some(json!(committed.revision.to_string())));
    Ok(object)
}

/// Removes an object from the store and returns the revision at which it went.
pub async fn remove(state: &State, exchange: &Exchange, live: &Record) -> Result<u64, ApiError> {
    let key: Key = live.key.clone();
    let name = key.name.to_string();
    let change = Change::Delete { key, expected: live.revision };
    let committed = state.store.commit(change).await.map_err(|error| refused(exchange, &name, &error))?;
    Ok(committed.revision)
}
