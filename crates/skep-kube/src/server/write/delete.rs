//! DELETE of an object or of a collection, and the end of an object whose last finalizer goes.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::crd;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read::{self, Selectors};
use super::super::registry::Origin;
use super::delete_options::{DeleteOptions, Propagation};
use super::draft::{self, Draft};
use crate::status::{ApiError, Reason};
use crate::store::{Record, Selection};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

pub async fn delete(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let options = DeleteOptions::of(exchange)?;
    check_is_not_immortal(exchange)?;
    let mut attempts = 0;
    loop {
        let record = read::find(state, exchange)?;
        match delete_one(state, exchange, &record, &options).await {
            Err(error)
                if error.reason == Reason::Conflict && !options.is_particular() && attempts < super::ATTEMPTS =>
            {
                attempts += 1;
            }
            Err(error) => return Err(error),
            Ok(Outcome::Gone(object)) if !answers_with_the_object(exchange) => {
                return Ok(exchange.reply_value(StatusCode::OK, &gone(exchange, &object)));
            }
            Ok(Outcome::Gone(object) | Outcome::Going(object)) => {
                return Ok(exchange.reply_object(StatusCode::OK, &object));
            }
        }
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

fn is_pod(exchange: &Exchange) -> bool {
    exchange.resource.group.is_empty() && exchange.resource.plural == "pods"
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

pub(super) async fn delete_one(
    state: &State,
    exchange: &Exchange,
    record: &std::sync::Arc<Record>,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    let old = read::load(exchange, record)?;
    options.check(exchange, &old)?;
    let mut new = old.clone();
    if crd::is_definition(&exchange.resource) && !metadata::is_being_deleted(&old) {
        crd::mark(&mut new);
        if !options.dry_run {
            metadata::set(&mut new, "resourceVersion", None);
            new = draft::store(state, exchange, Draft { object: new, live: Some(record.clone()) }).await?;
        }
        return Ok(Outcome::Going(new));
    }
    let finalizers = finalizers_for(&old, options);
    metadata::set(&mut new, "finalizers", (!finalizers.is_empty()).then(|| json!(finalizers)));
    let grace = grace_period(exchange, &old, options);
    if is_namespace(exchange) {
        // Whatever is in it goes first; then somebody finalizes it.
        new["status"]["phase"] = "Terminating".into();
    }
    if finalizers.is_empty() && grace == 0 && is_finalized(exchange, &old) {
        if !options.dry_run {
            draft::remove(state, exchange, record).await?;
        }
        if is_pod(exchange) {
            mark(&mut new, Some(grace));
            return Ok(Outcome::Gone(new));
        }
        return Ok(Outcome::Gone(old));
    }
    if metadata::is_being_deleted(&old) && finalizers == metadata::finalizers(&old) && grace_unchanged(&old, grace) {
        return Ok(Outcome::Going(old));
    }
    // A namespace is given the time it takes.
    mark(&mut new, (!is_namespace(exchange)).then_some(grace));
    metadata::set(&mut new, "resourceVersion", None);
    let draft = Draft { object: new, live: Some(record.clone()) };
    if options.dry_run {
        return Ok(Outcome::Going(draft.object));
    }
    Ok(Outcome::Going(draft::store(state, exchange, draft).await?))
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

/// Only pods that run somewhere are given time to stop.
fn grace_period(exchange: &Exchange, old: &Value, options: &DeleteOptions) -> i64 {
    let is_bound = old["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let is_done = matches!(old["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_pod(exchange) || !is_bound || is_done {
        return 0;
    }
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let wanted = options.grace_period_seconds.unwrap_or(own);
    match old["metadata"]["deletionGracePeriodSeconds"].as_i64() {
        // A second wish can only shorten the time.
        Some(running) => running.min(wanted),
        None => wanted,
    }
}

fn grace_unchanged(old: &Value, grace: i64) -> bool {
    old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == grace
}

/// Notes that the object is on its way out, which is a change of what is wanted.
fn mark(new: &mut Value, grace: Option<i64>) {
    if !metadata::is_being_deleted(new) {
        if let Some(generation) = new["metadata"]["generation"].as_i64() {
            metadata::set(new, "generation", Some(json!(generation + 1)));
        }
        let when = k8s_openapi::jiff::Timestamp::now()
            + k8s_openapi::jiff::SignedDuration::from_secs(grace.unwrap_or_default());
        metadata::set(new, "deletionTimestamp", Some(json!(when.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())));
    }
    metadata::set(new, "deletionGracePeriodSeconds", grace.map(Value::from));
}

/// Stores a changed object, or removes it when it was only waiting for its last finalizer to go.
pub async fn finalize(state: &State, exchange: &Exchange, draft: Draft) -> Result<Value, ApiError> {
    let waits_for_nothing = is_finalized(exchange, &draft.object)
        && metadata::is_being_deleted(&draft.object)
        && metadata::finalizers(&draft.object).is_empty()
        && draft.object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0;
    match draft {
        Draft { mut object, live: Some(live) } if waits_for_nothing && !exchange.options.dry_run => {
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
        match delete_one(state, exchange, &record, &options).await {
            Ok(Outcome::Gone(object) | Outcome::Going(object)) => items.push(listed(exchange, object)),
            // Somebody else was faster, which is as good.
            Err(error) if error.reason == Reason::NotFound => {}
            Err(error) => return Err(error),
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
