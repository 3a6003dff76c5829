//! What a controller wants to know of a pod, and how one is made from a template.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::jiff::Timestamp;

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// The node that it is bound to.
pub(super) fn node_name(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Its containers have ended for good.
pub(super) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(super) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Counts towards the replicas of its owner.
pub(super) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

pub(super) fn condition<'a>(pod: &'a Pod, wanted: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == wanted)
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when it has been ready, if it is.
pub(super) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// How long until a pod counts as available: `None` when it is not even ready, zero when it is available now.
pub(super) fn available_in(pod: &Pod, minimum: Duration, now: Timestamp) -> Option<Duration> {
    if !is_ready(pod) {
        return None;
    }
    if minimum.is_zero() {
        return Some(Duration::ZERO);
    }
    let ready = ready_since(pod)?;
    let waited = Duration::try_from(now.duration_since(ready)).unwrap_or_default();
    Some(minimum.saturating_sub(waited))
}

pub(super) fn is_available(pod: &Pod, minimum: Duration, now: Timestamp) -> bool {
    available_in(pod, minimum, now) == Some(Duration::ZERO)
}

/// The shortest time after which one more of these pods will be available.
pub(super) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    minimum: Duration,
    now: Timestamp,
) -> Option<Duration> {
    let waits = pods.into_iter().filter_map(|pod| available_in(pod, minimum, now));
    waits.filter(|wait| !wait.is_zero()).min()
}

pub(super) fn seconds(count: Option<i32>) -> Duration {
    Duration::from_secs(u64::try_from(count.unwrap_or(0)).unwrap_or(0))
}

/// How often its containers were restarted, at most.
pub(super) fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    containers.iter().map(|container| container.restart_count).max().unwrap_or(0)
}

/// A pod as its template wants it; the caller names it.
pub(super) fn from_template(template: &PodTemplateSpec, namespace: &str, owner: OwnerReference) -> Pod {
    let wanted = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            labels: wanted.labels,
            annotations: wanted.annotations,
            finalizers: wanted.finalizers,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Zero is not written: the API server leaves it out, too.
pub(super) fn count(number: usize) -> Option<i32> {
    Some(number).filter(|number| *number > 0).map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}
