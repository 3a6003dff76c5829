//! DELETE of an object or of a collection, and the end of an object whose last finalizer goes.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::metadata;
use super::super::read::{self, Selectors};
use super::draft::{self, Draft};
use crate::decode::decode_strict;
use crate::status::{ApiError, FieldError, Problem, ResourceName};
use crate::store::{Record, Selection};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// How an object is to be deleted.
#[derive(Debug, Clone, Default)]
struct Wish {
    grace_period_seconds: Option<i64>,
    propagation: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    dry_run: bool,
}

impl Wish {
    /// What the query says, and the body, which wins.
    fn of(exchange: &Exchange) -> Result<Self, ApiError> {
        let options = &exchange.options;
        let body = if exchange.body.is_empty() {
            json!({})
        } else {
            decode_strict(&exchange.body).map_err(|error| ApiError::bad_request(error.to_string()))?.0
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let orphan = body["orphanDependents"].as_bool().or(options.orphan_dependents);
        let wish = Self {
            grace_period_seconds: body["gracePeriodSeconds"].as_i64().or(options.grace_period_seconds),
            propagation: text(&body["propagationPolicy"])
                .or_else(|| options.propagation_policy.clone())
                .or_else(|| orphan.map(|orphan| if orphan { "Orphan" } else { "Background" }.to_owned())),
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            dry_run: options.dry_run || body["dryRun"].as_array().is_some_and(|list| list.contains(&json!("All"))),
        };
        wish.check()?;
        Ok(wish)
    }

    fn check(&self) -> Result<(), ApiError> {
        let known = ["Foreground", "Background", "Orphan"];
        match self.propagation.as_deref() {
            Some(policy) if !known.contains(&policy) => {
                let detail = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                let problem = Problem::NotSupported(policy.into());
                let error = FieldError::new("propagationPolicy", problem, detail);
                Err(ApiError::invalid(&ResourceName::new("meta.k8s.io", "DeleteOptions"), "", &[error]))
            }
            _ => Ok(()),
        }
    }
}

pub async fn delete(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let wish = Wish::of(exchange)?;
    check_is_not_immortal(exchange)?;
    let mut attempts = 0;
    loop {
        let record = read::find(state, exchange)?;
        match delete_one(state, exchange, &record, &wish).await {
            Err(error)
                if error.reason == crate::status::Reason::Conflict
                    && wish.resource_version.is_none()
                    && wish.uid.is_none()
                    && attempts < super::ATTEMPTS =>
            {
                attempts += 1;
            }
            Err(error) => return Err(error),
            Ok(Outcome::Gone(object)) => return Ok(exchange.reply_value(StatusCode::OK, &gone(exchange, &object))),
            Ok(Outcome::Going(object)) => return Ok(exchange.reply_value(StatusCode::OK, &object)),
        }
    }
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
enum Outcome {
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

async fn delete_one(
    state: &State,
    exchange: &Exchange,
    record: &std::sync::Arc<Record>,
    wish: &Wish,
) -> Result<Outcome, ApiError> {
    let old = read::load(exchange, record)?;
    check_preconditions(exchange, wish, &old)?;
    let mut new = old.clone();
    let finalizers = finalizers_for(&old, wish);
    metadata::set(&mut new, "finalizers", (!finalizers.is_empty()).then(|| json!(finalizers)));
    let grace = grace_period(exchange, &old, wish);
    if is_namespace(exchange) {
        // Whatever is in it goes first; then somebody finalizes it.
        new["status"]["phase"] = "Terminating".into();
    }
    if finalizers.is_empty() && grace == 0 && is_finalized(exchange, &old) {
        if !wish.dry_run {
            draft::remove(state, exchange, record).await?;
        }
        return Ok(Outcome::Gone(old));
    }
    if metadata::is_being_deleted(&old) && finalizers == metadata::finalizers(&old) && grace_unchanged(&old, grace) {
        return Ok(Outcome::Going(old));
    }
    mark(&mut new, grace);
    if let Some(generation) = old["metadata"]["generation"].as_i64()
        && !metadata::is_being_deleted(&old)
    {
        metadata::set(&mut new, "generation", Some(json!(generation + 1)));
    }
    metadata::set(&mut new, "resourceVersion", None);
    let draft = Draft { object: new, live: Some(record.clone()) };
    if wish.dry_run {
        return Ok(Outcome::Going(draft.object));
    }
    Ok(Outcome::Going(draft::store(state, exchange, draft).await?))
}

fn check_preconditions(exchange: &Exchange, wish: &Wish, old: &Value) -> Result<(), ApiError> {
    let checks = [
        ("UID", &wish.uid, metadata::uid(old)),
        ("ResourceVersion", &wish.resource_version, metadata::text(old, "resourceVersion")),
    ];
    for (what, believed, actual) in checks {
        if let Some(believed) = believed
            && believed != actual
        {
            let why =
                format!("Precondition failed: {what} in precondition: {believed}, {what} in object meta: {actual}");
            return Err(ApiError::conflict(&exchange.resource.name(), exchange.name(), &why));
        }
    }
    Ok(())
}

/// The finalizers that stand for what becomes of the dependents.
fn finalizers_for(old: &Value, wish: &Wish) -> Vec<String> {
    let mut finalizers: Vec<String> = metadata::finalizers(old).into_iter().map(str::to_owned).collect();
    let wanted = match wish.propagation.as_deref() {
        Some("Foreground") => Some(FOREGROUND),
        Some("Orphan") => Some(ORPHAN),
        Some(_) => None,
        // Nothing said: what the object has already stays.
        None => return finalizers,
    };
    finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    finalizers.extend(wanted.map(str::to_owned));
    finalizers
}

/// Only pods that run somewhere are given time to stop.
fn grace_period(exchange: &Exchange, old: &Value, wish: &Wish) -> i64 {
    let is_pod = exchange.resource.group.is_empty() && exchange.resource.plural == "pods";
    let is_bound = old["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let is_done = matches!(old["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_pod || !is_bound || is_done {
        return 0;
    }
    let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let wanted = wish.grace_period_seconds.unwrap_or(own);
    match old["metadata"]["deletionGracePeriodSeconds"].as_i64() {
        // A second wish can only shorten the time.
        Some(running) => running.min(wanted),
        None => wanted,
    }
}

fn grace_unchanged(old: &Value, grace: i64) -> bool {
    old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == grace
}

fn mark(new: &mut Value, grace: i64) {
    if !metadata::is_being_deleted(new) {
        let when = k8s_openapi::jiff::Timestamp::now() + k8s_openapi::jiff::SignedDuration::from_secs(grace);
        metadata::set(new, "deletionTimestamp", Some(json!(when.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())));
    }
    metadata::set(new, "deletionGracePeriodSeconds", Some(json!(grace)));
}

/// Stores a changed object, or removes it when it was only waiting for its last finalizer to go.
pub async fn finalize(state: &State, exchange: &Exchange, draft: Draft) -> Result<Value, ApiError> {
    let waits_for_nothing = is_finalized(exchange, &draft.object)
        && metadata::is_being_deleted(&draft.object)
        && metadata::finalizers(&draft.object).is_empty()
        && draft.object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0;
    match &draft.live {
        Some(live) if waits_for_nothing && !exchange.options.dry_run => {
            draft::remove(state, exchange, &live.clone()).await?;
            Ok(draft.object)
        }
        _ => draft::store(state, exchange, draft).await,
    }
}

/// DELETE of a collection: every object that is selected.
pub async fn delete_collection(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let wish = Wish::of(exchange)?;
    let selectors = Selectors::of(exchange)?;
    let resource = exchange.resource.storage_name();
    let selection = Selection { namespace: exchange.path.namespace.as_deref(), ..Selection::all(&resource) };
    let page = state.store.list(&selection);
    let mut items = Vec::new();
    for record in page.records.into_iter().filter(|record| selectors.matches(record)) {
        match delete_one(state, exchange, &record, &wish).await {
            Ok(Outcome::Gone(object) | Outcome::Going(object)) => items.push(object),
            // Somebody else was faster, which is as good.
            Err(error) if error.reason == crate::status::Reason::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let list = json!({
        "apiVersion": exchange.api_version(),
        "kind": exchange.resource.list_kind,
        "metadata": { "resourceVersion": page.revision.to_string() },
        "items": items,
    });
    Ok(exchange.reply_value(StatusCode::OK, &list))
}
