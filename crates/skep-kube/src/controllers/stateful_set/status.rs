//! What a StatefulSet says about itself.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::super::pods;
use super::identity::revision_of;
use super::revisions::Revisions;

pub(super) fn status(
    set: &StatefulSet,
    owned: &[Arc<Pod>],
    revisions: &Revisions,
    now: Timestamp,
) -> StatefulSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let minimum = pods::seconds(spec.min_ready_seconds);
    let count = |wanted: &dyn Fn(&Pod) -> bool| owned.iter().filter(|pod| wanted(pod)).count();
    let is_running_and_ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
    let of_revision = |name: &str| count(&|pod: &Pod| !pods::is_terminating(pod) && revision_of(pod) == Some(name));
    let ready = count(&is_running_and_ready);
    let available = count(&|pod| is_running_and_ready(pod) && pods::is_available(pod, minimum, now));
    let updated = of_revision(&revisions.update);
    let strategy = spec.update_strategy.and_then(|strategy| strategy.type_);
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    let finished = strategy.as_deref() != Some("OnDelete") && [updated, ready, owned.len()] == [wanted; 3];
    let current = if finished { &revisions.update } else { &revisions.current };
    let before = set.status.clone().unwrap_or_default();
    StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: i32::try_from(owned.len()).unwrap_or(i32::MAX),
        ready_replicas: pods::count(ready),
        available_replicas: Some(i32::try_from(available).unwrap_or(i32::MAX)),
        current_replicas: pods::count(of_revision(current)),
        updated_replicas: pods::count(updated),
        current_revision: Some(current.clone()),
        update_revision: Some(revisions.update.clone()),
        collision_count: Some(before.collision_count.unwrap_or(0)),
        conditions: before.conditions,
    }
}
