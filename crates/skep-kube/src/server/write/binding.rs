//! POST to `pods/NAME/binding`: a scheduler's decision.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::State;
use super::super::exchange::Exchange;
use super::super::read;
use super::draft::{self, Draft};
use super::expected::Expected;
use super::{body, now};
use crate::status::ApiError;

pub async fn bind(state: &State, exchange: &Exchange) -> Result<Response<Body>, ApiError> {
    let binding = body::read(exchange, &Expected::binding())?.value;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(ApiError::bad_request("the binding names no node in target.name"));
    }
    let record = read::find(state, exchange)?;
    let mut pod = read::load(exchange, &record)?;
    if let Some(taken) = pod["spec"]["nodeName"].as_str().filter(|taken| !taken.is_empty()) {
        let why = format!("pod {} is already assigned to node {taken:?}", exchange.name());
        return Err(ApiError::conflict(&crate::status::ResourceName::new("", "pods/binding"), exchange.name(), &why));
    }
    pod["spec"]["nodeName"] = node.into();
    set_scheduled(&mut pod);
    super::super::metadata::set(&mut pod, "resourceVersion", None);
    draft::store(state, exchange, Draft { object: pod, live: Some(record) }).await?;
    let success = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(exchange.reply_value(StatusCode::CREATED, &success))
}

fn set_scheduled(pod: &mut Value) {
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now(),
    });
    match pod["status"]["conditions"].as_array_mut() {
        Some(conditions) => {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(condition);
        }
        None => pod["status"]["conditions"] = json!([condition]),
    }
}
