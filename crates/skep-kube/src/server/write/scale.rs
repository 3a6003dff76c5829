//! The scale subresource: how many replicas an object wants and has.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::read;
use super::super::registry::at_simple_path;
use super::body;
use super::delete::finalize;
use super::draft::{self, Ownership};
use super::expected::Expected;
use super::update::{check_uid, revision};
use crate::decode::UnusualNumbers;
use crate::patch::{self as patches, PatchError, PatchKind};
use crate::schema::Scale;
use crate::status::{ApiError, FieldError, ResourceName};

pub fn get(state: &State, exchange: &Exchange) -> Result<Response<Body>, ApiError> {
    let record = read::find(state, exchange)?;
    let object = read::load(exchange, &record)?;
    let scale = show(exchange, &object)?;
    Ok(exchange.reply_value(StatusCode::OK, &scale))
}

pub async fn update(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let scale = body::read(exchange, &Expected::scale())?.value;
    body::check_name(exchange, &scale)?;
    write(state, exchange, |_| Ok(scale)).await
}

pub async fn patch(state: &State, exchange: &mut Exchange) -> Result<Response<Body>, ApiError> {
    let media_type = exchange.content_type().unwrap_or_default().to_owned();
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

fn paths(exchange: &Exchange) -> Result<Scale, ApiError> {
    exchange.version()?.subresource("scale").and_then(|part| part.scale.clone()).ok_or_else(ApiError::no_such_path)
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
    Ok(json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept, "spec": spec, "status": status }))
}

async fn write(
    state: &State,
    exchange: &Exchange,
    change: impl FnOnce(&Value) -> Result<Value, ApiError>,
) -> Result<Response<Body>, ApiError> {
    let record = read::find(state, exchange)?;
    let old = read::load(exchange, &record)?;
    let mut wanted = change(&show(exchange, &old)?)?;
    body::check_namespace(exchange, &mut wanted)?;
    check_uid(exchange, &wanted, &old)?;
    let believed = revision(&wanted)?;
    if believed != 0 && believed != record.revision {
        return Err(ApiError::modified(&exchange.resource.name(), exchange.name()));
    }
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(ApiError::invalid(&ResourceName::new("autoscaling", "Scale"), exchange.name(), &[error]));
    }
    let mut new = old.clone();
    set_at(&mut new, &paths(exchange)?.spec_replicas_path, json!(replicas));
    let manager = draft::manager(exchange);
    let ownership = Ownership::Update { manager: &manager };
    let draft = draft::finish(state, exchange, new, Some((&record, &old)), "scale", ownership)?;
    let written = finalize(state, exchange, draft).await?;
    Ok(exchange.reply_value(StatusCode::OK, &show(exchange, &written)?))
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
