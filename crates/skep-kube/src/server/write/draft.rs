//! An object on its way into the store: defaulted, validated and given its owners.

mod built_in;
mod custom;

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::State;
use super::super::admission::Promise;
use super::super::codec;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read;
use super::super::registry::Origin;
use super::{now, refused};
use crate::apply::{self, Ownable, Target};
use crate::builtin;
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
        Origin::Custom => custom::default(&exchange.version()?.schema, &mut new, ownership),
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
            custom::finish(exchange, &mut new, old, subresource, ownership)?;
            None
        }
        Origin::BuiltIn(kind) => built_in::finish(state, exchange, kind, &mut new, old, subresource)?,
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

fn refuse(exchange: &Exchange, object: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&exchange.resource.kind_name(), metadata::name(object), errors))
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
