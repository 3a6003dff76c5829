//! Deployments, ReplicaSets, StatefulSets, and what belongs to them.

use serde_json::Value;
use time::OffsetDateTime;

use super::{
    AGE, CONTAINERS, Declared, Field, IMAGES, NAME, Words, age, count, items, name, selector_text, template_cells, text,
};

const READY: Declared = Declared("Ready", "string", 0, Words("How many pods are ready, of how many wanted."));

pub(super) fn columns(kind: &str) -> Vec<Declared> {
    match kind {
        "Deployment" => vec![
            NAME,
            READY,
            Declared("Up-to-date", "string", 0, Field("status.updatedReplicas")),
            Declared("Available", "string", 0, Field("status.availableReplicas")),
            AGE,
            CONTAINERS,
            IMAGES,
            Declared("Selector", "string", 1, Field("spec.selector")),
        ],
        "ReplicaSet" => vec![
            NAME,
            Declared("Desired", "integer", 0, Field("spec.replicas")),
            Declared("Current", "integer", 0, Field("status.replicas")),
            Declared("Ready", "integer", 0, Field("status.readyReplicas")),
            AGE,
            CONTAINERS,
            IMAGES,
            Declared("Selector", "string", 1, Field("spec.selector")),
        ],
        "StatefulSet" => vec![NAME, READY, AGE, CONTAINERS, IMAGES],
        "ControllerRevision" => vec![
            NAME,
            Declared("Controller", "string", 0, Words("The object whose revision it is.")),
            Declared("Revision", "string", 0, Field("revision")),
            AGE,
        ],
        "HorizontalPodAutoscaler" => vec![
            NAME,
            Declared("Reference", "string", 0, Field("spec.scaleTargetRef")),
            Declared("Targets", "string", 0, Field("spec.metrics")),
            Declared("MinPods", "string", 0, Field("spec.minReplicas")),
            Declared("MaxPods", "string", 0, Field("spec.maxReplicas")),
            Declared("Replicas", "string", 0, Field("status.currentReplicas")),
            AGE,
        ],
        _ => vec![
            NAME,
            Declared("Min Available", "string", 0, Words("How many pods must stay.")),
            Declared("Max Unavailable", "string", 0, Words("How many pods may be gone.")),
            Declared("Allowed Disruptions", "integer", 0, Words("How many pods may go now.")),
            AGE,
        ],
    }
}

pub(super) fn row(kind: &str, object: &Value, now: OffsetDateTime) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let [containers, images] = template_cells(&spec["template"]);
    let ready = || format!("{}/{}", count(&status["readyReplicas"]), count(&spec["replicas"])).into();
    let selector = || selector_text(&spec["selector"]).into();
    match kind {
        "Deployment" => vec![
            name(object),
            ready(),
            count(&status["updatedReplicas"]).into(),
            count(&status["availableReplicas"]).into(),
            age(object, now),
            containers,
            images,
            selector(),
        ],
        "ReplicaSet" => vec![
            name(object),
            count(&spec["replicas"]).into(),
            count(&status["replicas"]).into(),
            count(&status["readyReplicas"]).into(),
            age(object, now),
            containers,
            images,
            selector(),
        ],
        "StatefulSet" => vec![name(object), ready(), age(object, now), containers, images],
        "ControllerRevision" => {
            vec![name(object), controller(object), count(&object["revision"]).into(), age(object, now)]
        }
        "HorizontalPodAutoscaler" => vec![
            name(object),
            format!("{}/{}", text(&spec["scaleTargetRef"], "kind"), text(&spec["scaleTargetRef"], "name")).into(),
            targets(object).into(),
            spec["minReplicas"].as_i64().map_or_else(|| "<unset>".to_owned(), |number| number.to_string()).into(),
            count(&spec["maxReplicas"]).into(),
            count(&status["currentReplicas"]).into(),
            age(object, now),
        ],
        _ => vec![
            name(object),
            amount(&spec["minAvailable"]),
            amount(&spec["maxUnavailable"]),
            count(&status["disruptionsAllowed"]).into(),
            age(object, now),
        ],
    }
}

fn amount(value: &Value) -> Value {
    match value {
        Value::Null => "N/A".into(),
        Value::String(text) => text.as_str().into(),
        number => number.to_string().into(),
    }
}

/// The owner, with its group: `statefulset.apps/web`.
fn controller(object: &Value) -> Value {
    let owner = items(&object["metadata"], "ownerReferences").iter().find(|owner| owner["controller"] == true);
    let Some(owner) = owner else { return "<none>".into() };
    let kind = text(owner, "kind").to_lowercase();
    match text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", text(owner, "name")).into(),
        None => format!("{kind}/{}", text(owner, "name")).into(),
    }
}

/// Current and wanted values of the first metrics.
fn targets(autoscaler: &Value) -> String {
    let metrics = items(&autoscaler["spec"], "metrics");
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let current = items(&autoscaler["status"], "currentMetrics");
    let mut shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| target(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    let more = shown.len().saturating_sub(2);
    if more > 0 {
        shown.truncate(2);
        return format!("{} + {more} more...", shown.join(", "));
    }
    shown.join(", ")
}

fn target(metric: &Value, current: &Value) -> String {
    let member = match text(metric, "type") {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let (source, found) = (&metric[member], &current[member]["current"]);
    let goal = &source["target"];
    let known = |text: Option<String>| text.unwrap_or_else(|| "<unknown>".to_owned());
    let value = |name: &str| found[name].as_str().map(str::to_owned);
    match member {
        "resource" | "containerResource" => {
            let label = text(source, "name");
            if let Some(wanted) = goal["averageValue"].as_str() {
                return format!("{label}: {}/{wanted}", known(value("averageValue")));
            }
            let now = found["averageUtilization"].as_i64().map(|share| format!("{share}%"));
            let wanted =
                goal["averageUtilization"].as_i64().map_or_else(|| "<auto>".to_owned(), |share| format!("{share}%"));
            format!("{label}: {}/{wanted}", known(now))
        }
        _ => match goal["averageValue"].as_str() {
            Some(wanted) if member == "pods" => format!("{}/{wanted}", known(value("averageValue"))),
            Some(wanted) => format!("{}/{wanted} (avg)", known(value("averageValue"))),
            None => format!("{}/{}", known(value("value")), text(goal, "value")),
        },
    }
}
