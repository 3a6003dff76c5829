//! The scale subresource: how many replicas an object wants and has.

use std::sync::Arc;

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::read;
use super::super::registry::at_simple_path;
use super::delete::finalize;
use super::draft::{self, Ownership};
use super::expected::Expected;
use super::patch::{APPLY, media_type};
use super::update::{check_uid, revision};
use super::{Attempts, body, configuration};
use crate::apply::{ApplyError, BEFORE_FIRST_APPLY};
use crate::decode::UnusualNumbers;
use crate::patch::{self as patches, PatchError, PatchKind};
use crate::schema::Scale;
use crate::status::{ApiError, FieldError, ResourceName};
use crate::store::Record;

const API_VERSION: &str = "autoscaling/v1";
const KIND: &str = "Scale";
const SUBRESOURCE: &str = "scale";

pub fn get(state: &State, exchange: &Exchange) -> Result<Response<Body>, ApiError> {
    let record = read::find(state, exchange)?;
    let object = read::load(exchange, &record)?;
    let scale = show(exchange, &object)?;
    Ok(exchange.reply_value(StatusCode::OK, &scale))
}

pub async fn update(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let scale = body::read(exchange, &Expected::scale())?.value;
    body::check_name(exchange, &scale)?;
    write(state, exchange, |_| Ok(scale.clone())).await
}

pub async fn patch(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let media_type = media_type(exchange)?;
    if media_type == APPLY {
        return apply(state, exchange).await;
    }
    let kind = PatchKind::of_content_type(&media_type).ok_or_else(ApiError::unsupported_patch)?;
    // A scale has no lists, so that a strategic patch of it is a merge patch.
    let kind = if kind == PatchKind::Strategic { PatchKind::Merge } else { kind };
    let body = exchange.body.clone();
    write(state, exchange, |scale| {
        let mut patched = patches::apply(kind, &body, scale, None)?;
        let read = Expected::scale().check(&mut patched.object, &UnusualNumbers::default(), String::new);
        read.map_err(|misread| PatchError::Unconvertible { shown: patched.shown(), problem: misread.problem })?;
        body::check_name(exchange, &patched.object)?;
        Ok(patched.object)
    })
    .await
}

/// Apply of a scale: its number of replicas is applied to the object itself, by way of the scale.
async fn apply(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let scale = configuration::read(exchange)?;
    configuration::check_type(&scale, API_VERSION, KIND)?;
    body::check_name(exchange, &scale)?;
    let mut configuration = json!({
        "apiVersion": exchange.api_version(),
        "kind": exchange.resource.kind,
        "metadata": { "name": exchange.name() },
    });
    if let Some(replicas) = scale["spec"].get("replicas") {
        set_at(&mut configuration, &paths(exchange)?.spec_replicas_path, replicas.clone());
    }
    let manager = draft::manager(exchange);
    let mut attempts = Attempts::start();
    loop {
        let record = read::find(state, exchange)?;
        let old = read::load(exchange, &record)?;
        let refuse = |error: ApplyError| error.seen_as(API_VERSION).into();
        let path = paths(exchange)?.spec_replicas_path;
        let owned = with_owner(&old, &exchange.api_version(), &path);
        let mut new = configuration::merge(exchange, Some(&owned), &configuration, &manager, SUBRESOURCE, refuse)?;
        settle_owners(&mut new, &manager, &path);
        if at_simple_path(&new, &path).is_none() {
            set_at(&mut new, &path, json!(0));
        }
        let draft = draft::finish(state, exchange, new, Some((&record, &old)), SUBRESOURCE, Ownership::Settled)?;
        match finalize(state, exchange, draft).await {
            Err(error) if attempts.go_on(&error) => {
                attempts.take_turn(&state.queues, &read::key(exchange, exchange.name())).await;
            }
            written => return Ok(exchange.reply_value(StatusCode::OK, &show(exchange, &written?)?)),
        }
    }
}

/// An object whose number of replicas has an owner: where nobody owns it, it is that of whoever came before.
fn with_owner(object: &Value, api_version: &str, path: &str) -> Value {
    let mut owned = object.clone();
    let fields = fields(path);
    let pointer = format!("/{}", fields.join("/"));
    let Some(entries) = owned["metadata"]["managedFields"].as_array_mut() else { return owned };
    let is_owned = entries.iter().any(|entry| entry["fieldsV1"].pointer(&pointer).is_some());
    if !is_owned && at_simple_path(object, path).is_some() {
        let set = fields.iter().rev().fold(json!({}), |below, name| json!({ name: below }));
        entries.push(json!({
            "manager": BEFORE_FIRST_APPLY, "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1",
            "fieldsV1": set, "subresource": SUBRESOURCE,
        }));
    }
    owned
}

/// A path as sets of fields write it.
fn fields(path: &str) -> Vec<String> {
    path.trim_start_matches('.').split('.').map(|name| format!("f:{name}")).collect()
}

/// Whoever applies a scale owns its number alone, or with whoever came before, and is not dated.
fn settle_owners(object: &mut Value, manager: &str, path: &str) {
    let path = fields(path);
    let Some(entries) = object["metadata"]["managedFields"].as_array_mut() else { return };
    entries.retain_mut(|entry| {
        let is_one = |manager: &str, operation: &str| {
            entry["manager"] == manager && entry["operation"] == operation && entry["subresource"] == SUBRESOURCE
        };
        if is_one(manager, "Apply") || is_one(BEFORE_FIRST_APPLY, "Update") {
            entry.as_object_mut().map(|members| members.remove("time"));
            return true;
        }
        give_up(&mut entry["fieldsV1"], &path);
        entry["fieldsV1"].as_object().is_some_and(|fields| !fields.is_empty())
    });
}

/// Takes a path out of a set of fields, and what is empty without it.
fn give_up(fields: &mut Value, path: &[String]) {
    let (Some((first, rest)), Some(members)) = (path.split_first(), fields.as_object_mut()) else { return };
    if let Some(below) = members.get_mut(first).filter(|_| !rest.is_empty()) {
        give_up(below, rest);
        if below.as_object().is_some_and(|below| !below.is_empty()) {
            return;
        }
    }
    members.remove(first);
}

fn paths(exchange: &Exchange) -> Result<Scale, ApiError> {
    exchange.version()?.subresource(SUBRESOURCE).and_then(|part| part.scale.clone()).ok_or_else(ApiError::no_such_path)
}

fn show(exchange: &Exchange, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(exchange)?;
    let Some(wanted) = at_simple_path(object, &paths.spec_replicas_path).and_then(Value::as_i64) else {
        let message = format!("the spec replicas field {:?} does not exist", paths.spec_replicas_path);
        return Err(ApiError::internal(&message));
    };
    let running = at_simple_path(object, &paths.status_replicas_path).and_then(Value::as_i64).unwrap_or_default();
    let mut status = json!({ "replicas": running });
    let selector = paths.label_selector_path.as_deref().and_then(|path| at_simple_path(object, path));
    if let Some(selector) = selector {
        let selector = match selector {
            Value::String(text) => text.clone(),
            other => crate::selector::LabelSelector::from_object(other)
                .map(|selector| selector.to_string())
                .unwrap_or_default(),
        };
        status["selector"] = selector.into();
    }
    let mut kept = json!({});
    for member in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(member) {
            kept[member] = value.clone();
        }
    }
    // None at all are left out, as structs do.
    let spec = if wanted == 0 { json!({}) } else { json!({ "replicas": wanted }) };
    Ok(json!({ "kind": KIND, "apiVersion": API_VERSION, "metadata": kept, "spec": spec, "status": status }))
}

async fn write(
    state: &State,
    exchange: &Exchange,
    change: impl Fn(&Value) -> Result<Value, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let mut attempts = Attempts::start();
    loop {
        let record = read::find(state, exchange)?;
        let old = read::load(exchange, &record)?;
        let mut wanted = change(&show(exchange, &old)?)?;
        let believed = revision(&wanted)?;
        if believed != 0 && believed != record.revision {
            return Err(ApiError::modified(&exchange.resource.name(), exchange.name()));
        }
        body::check_namespace(exchange, &mut wanted)?;
        check_uid(exchange, &wanted, &old)?;
        match write_once(state, exchange, &record, &old, &wanted).await {
            // Whoever named a revision is refused above.
            Err(error) if attempts.go_on(&error) => {
                attempts.take_turn(&state.queues, &read::key(exchange, exchange.name())).await;
            }
            written => return Ok(exchange.reply_value(StatusCode::OK, &show(exchange, &written?)?)),
        }
    }
}

async fn write_once(
    state: &State,
    exchange: &Exchange,
    record: &Arc<Record>,
    old: &Value,
    wanted: &Value,
) -> Result<Value, ApiError> {
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid(&ResourceName::new("autoscaling", "Scale"), exchange.name(), &[error]));
    }
    let mut new = old.clone();
    set_at(&mut new, &paths(exchange)?.spec_replicas_path, json!(replicas));
    let manager = draft::manager(exchange);
    let ownership = Ownership::Update { manager: &manager };
    let draft = draft::finish(state, exchange, new, Some((record, old)), SUBRESOURCE, ownership)?;
    finalize(state, exchange, draft).await
}

fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for name in path.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value;
}
