//! The conditions in the status of a pod, as far as the server itself writes them.

use serde_json::{Value, json};

use super::now;

/// Says that a condition holds. One that is there keeps its place, and the time since when it has held.
pub fn hold(pod: &mut Value, type_: &str, reason: Option<(&str, &str)>) {
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = pod["status"]["conditions"].as_array_mut() else { return };
    let mut condition = json!({ "type": type_, "status": "True", "lastProbeTime": null, "lastTransitionTime": now() });
    if let Some((reason, message)) = reason {
        condition["reason"] = reason.into();
        condition["message"] = message.into();
    }
    let Some(before) = conditions.iter_mut().find(|condition| condition["type"] == type_) else {
        conditions.push(condition);
        return;
    };
    if before["status"] == "True" {
        condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
    }
    *before = condition;
}
