//! DELETE of an object or of a collection, and the end of an object whose last finalizer goes.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::crd;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read::{self, Selectors};
use super::super::registry::Origin;
use super::Attempts;
use super::delete_options::{DeleteOptions, Propagation};
use super::draft::{self, Draft};
use super::grace::{Grace, mark};
use crate::status::{ApiError, Reason};
use crate::store::{Record, Selection};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub async fn delete(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let options = DeleteOptions::of(exchange)?;
    check_is_not_immortal(exchange)?;
    let record = read::find(state, exchange)?;
    match delete_record(state, exchange, record, &options).await? {
        Outcome::Gone(object) if !answers_with_the_object(exchange) => {
            Ok(exchange.reply_value(StatusCode::OK, &gone(exchange, &object)))
        }
        Outcome::Gone(object) | Outcome::Going(object) => Ok(exchange.reply_object(StatusCode::OK, &object)),
    }
}

/// Most deletions are answered with a word; those of some kinds with what is gone.
fn answers_with_the_object(exchange: &Exchange) -> bool {
    let kinds = ["PersistentVolume", "PersistentVolumeClaim", "Pod", "Service", "ServiceAccount", "StorageClass"];
    matches!(exchange.resource.origin, Origin::BuiltIn(kind) if kinds.contains(&kind.kind))
}

/// Namespaces without which a cluster is none.
fn check_is_not_immortal(exchange: &Exchange) -> Result<(), ApiError> {
    if is_namespace(exchange) && ["default", "kube-system", "kube-public"].contains(&exchange.name()) {
        let why = "this namespace may not be deleted";
        return Err(ApiError::forbidden(&exchange.resource.name(), exchange.name(), why));
    }
    Ok(())
}

fn is_namespace(exchange: &Exchange) -> bool {
    exchange.resource.group.is_empty() && exchange.resource.plural == "namespaces"
}

/// Whether nothing is left to do before a namespace can go. Other kinds have no such thing.
fn is_finalized(exchange: &Exchange, object: &Value) -> bool {
    !is_namespace(exchange) || object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// What a deletion leads to.
pub(super) enum Outcome {
    Gone(Value),
    /// Finalizers, or a grace period, keep it for now.
    Going(Value),
}

fn gone(exchange: &Exchange, object: &Value) -> Value {
    let mut details =
        json!({ "name": metadata::name(object), "kind": exchange.resource.plural, "uid": metadata::uid(object) });
    if !exchange.resource.group.is_empty() {
        details["group"] = exchange.resource.group.as_str().into();
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

/// Deletes an object as it is by then: whoever does not mean one state of it does not care that it changes.
pub(super) async fn delete_record(
    state: &State,
    exchange: &Exchange,
    mut record: Arc<Record>,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    let attempts = Attempts::start();
    loop {
        match delete_one(state, exchange, &record, options).await {
            Err(error) if !options.is_particular() && attempts.go_on(&error) => {}
            outcome => return outcome,
        }
        let found = state.store.get(&record.key);
        record = found.ok_or_else(|| ApiError::not_found(&exchange.resource.name(), &record.key.name))?;
    }
}

pub(super) async fn delete_one(
    state: &State,
    exchange: &Exchange,
    record: &Arc<Record>,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    let old = read::load(exchange, record)?;
    options.check(exchange, &old)?;
    if crd::is_definition(&exchange.resource) && !metadata::is_being_deleted(&old) {
        return delete_definition(state, exchange, record, old, options).await;
    }
    let grace = Grace::of(exchange, &old, options);
    if grace == Grace::Running {
        return Ok(Outcome::Going(old));
    }
    let mut new = old.clone();
    let finalizers = finalizers_for(&old, options);
    metadata::set(&mut new, "finalizers", (!finalizers.is_empty()).then(|| json!(finalizers)));
    if is_namespace(exchange) {
        // Whatever is in it goes first; then somebody finalizes it.
        new["status"]["phase"] = "Terminating".into();
    }
    let is_free = finalizers.is_empty() && is_finalized(exchange, &old);
    if is_free && grace == Grace::Unknown {
        return remove(state, exchange, record, old, options).await;
    }
    if metadata::is_being_deleted(&old) && finalizers == metadata::finalizers(&old) && grace == Grace::Unknown {
        return Ok(Outcome::Going(old));
    }
    let goes_at_once = is_free && grace.seconds() == 0;
    // A namespace is given the time it takes.
    mark(&mut new, (!is_namespace(exchange)).then_some(grace.seconds()));
    if options.dry_run && goes_at_once {
        return Ok(Outcome::Gone(new));
    }
    metadata::set(&mut new, "resourceVersion", None);
    let draft = Draft::of(new, record.clone());
    if options.dry_run {
        return Ok(Outcome::Going(draft.object));
    }
    let marked = draft::store(state, exchange, draft).await?;
    if goes_at_once {
        // Even who has no time at all is told first.
        return remove_told(state, exchange, record, marked).await;
    }
    Ok(Outcome::Going(marked))
}

/// A definition waits until its objects are gone.
async fn delete_definition(
    state: &State,
    exchange: &Exchange,
    record: &Arc<Record>,
    mut object: Value,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    crd::mark(&mut object);
    if !options.dry_run {
        metadata::set(&mut object, "resourceVersion", None);
        object = draft::store(state, exchange, Draft::of(object, record.clone())).await?;
    }
    Ok(Outcome::Going(object))
}

/// Removes an object, which is at the revision of its end then.
async fn remove(
    state: &State,
    exchange: &Exchange,
    record: &Record,
    mut object: Value,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    if !options.dry_run {
        let revision = draft::remove(state, exchange, record).await?;
        metadata::set(&mut object, "resourceVersion", Some(json!(revision.to_string())));
    }
    Ok(Outcome::Gone(object))
}

/// Removes an object that has just been told, whatever became of it since. Whoever runs it may be faster.
async fn remove_told(state: &State, exchange: &Exchange, first: &Record, object: Value) -> Result<Outcome, ApiError> {
    let attempts = Attempts::start();
    while let Some(record) = state.store.get(&first.key).filter(|record| record.created == first.created) {
        match remove(state, exchange, &record, object.clone(), &DeleteOptions::default()).await {
            Err(error) if attempts.go_on(&error) => {}
            Err(error) if error.reason == Reason::NotFound => break,
            outcome => return outcome,
        }
    }
    Ok(Outcome::Gone(object))
}

/// The finalizers that stand for what becomes of the dependents.
fn finalizers_for(old: &Value, options: &DeleteOptions) -> Vec<String> {
    let mut finalizers: Vec<String> = metadata::finalizers(old).into_iter().map(str::to_owned).collect();
    let wanted = match options.propagation {
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Background) => None,
        // Nothing said: what the object has already stays.
        None => return finalizers,
    };
    finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    finalizers.extend(wanted.map(str::to_owned));
    finalizers
}

/// Stores a changed object, or removes it when it was only waiting for its last finalizer to go.
pub async fn finalize(state: &State, exchange: &Exchange, draft: Draft) -> Result<Value, ApiError> {
    let waits_for_nothing = is_finalized(exchange, &draft.object)
        && metadata::is_being_deleted(&draft.object)
        && metadata::finalizers(&draft.object).is_empty()
        && draft.object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0;
    match draft {
        Draft { mut object, live: Some(live), .. } if waits_for_nothing && !exchange.options.dry_run => {
            draft::remove(state, exchange, &live).await?;
            metadata::set(&mut object, "resourceVersion", Some(json!(live.revision.to_string())));
            Ok(object)
        }
        draft => draft::store(state, exchange, draft).await,
    }
}

/// DELETE of a collection: every object that is selected.
pub async fn delete_collection(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let options = DeleteOptions::of(exchange)?;
    let selectors = Selectors::of(exchange)?;
    let resource = exchange.resource.storage_name();
    let selection = Selection { namespace: exchange.path.namespace.as_deref(), ..Selection::all(&resource) };
    let page = state.store.list(&selection);
    let mut items = Vec::new();
    for record in page.records.into_iter().filter(|record| selectors.matches(record)) {
        // The answer is what there was.
        items.push(listed(exchange, read::load(exchange, &record)?));
        match delete_record(state, exchange, record, &options).await {
            // Somebody else was faster, which is as good.
            Err(error) if error.reason != Reason::NotFound => return Err(error),
            _ => {}
        }
    }
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    // The list of a custom resource says even that nothing follows.
    if exchange.resource.origin == Origin::Custom {
        metadata["continue"] = "".into();
    }
    let list = json!({
        "apiVersion": exchange.api_version(),
        "kind": exchange.resource.list_kind,
        "metadata": metadata,
        "items": items,
    });
    Ok(exchange.reply_value(StatusCode::OK, &list))
}

/// An object as an item of a list, which says for all of them what they are. Custom objects say it themselves.
fn listed(exchange: &Exchange, mut object: Value) -> Value {
    if let (Origin::BuiltIn(_), Some(members)) = (exchange.resource.origin, object.as_object_mut()) {
        members.retain(|name, _| name != "apiVersion" && name != "kind");
    }
    object
}
