//! The conditions of a Deployment.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::plan::is_paused;
use super::rollout::Bounds;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const REPLICA_FAILURE: &str = "ReplicaFailure";
pub(super) const PAUSED: &str = "DeploymentPaused";
pub(super) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const NEW_AVAILABLE: &str = "NewReplicaSetAvailable";
/// The default of a Deployment that was made by an old API: no deadline at all.
const NO_DEADLINE: i32 = i32::MAX;

/// Something happened in this pass that the Progressing condition tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Milestone {
    Paused,
    Resumed,
    Found(String),
    Created(String),
    CreateFailed(String),
    /// The name of the new ReplicaSet is taken; not a condition, but the hash must change.
    Collided,
}

pub(super) fn progressing(deployment: &Deployment) -> Option<&DeploymentCondition> {
    find(deployment.status.as_ref()?.conditions.as_deref()?, PROGRESSING)
}

fn find<'a>(conditions: &'a [DeploymentCondition], wanted: &str) -> Option<&'a DeploymentCondition> {
    conditions.iter().find(|condition| condition.type_ == wanted)
}

/// Sets a condition; one that says the same already stays as it is.
fn set(conditions: &mut Vec<DeploymentCondition>, mut condition: DeploymentCondition) {
    if let Some(known) = find(conditions, &condition.type_) {
        if known.status == condition.status && known.reason == condition.reason {
            return;
        }
        if known.status == condition.status {
            condition.last_transition_time.clone_from(&known.last_transition_time);
        }
    }
    conditions.retain(|known| known.type_ != condition.type_);
    conditions.push(condition);
}

fn condition(type_: &str, status: &str, reason: &str, message: String, now: Timestamp) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// The conditions that go with new counts. `rolling` is false when this pass only scaled.
pub(super) fn conditions(
    deployment: &Deployment,
    counts: &DeploymentStatus,
    new: Option<&Arc<ReplicaSet>>,
    old: &[&Arc<ReplicaSet>],
    milestone: Option<&Milestone>,
    rolling: bool,
    now: Timestamp,
) -> Vec<DeploymentCondition> {
    let before = deployment.status.clone().unwrap_or_default();
    let mut conditions = before.conditions.clone().unwrap_or_default();
    let bounds = Bounds::of(deployment);
    let available = counts.available_replicas.unwrap_or(0) >= bounds.least_available();
    set(&mut conditions, availability(available, now));
    if deadline(deployment).is_none() {
        conditions.retain(|condition| condition.type_ != PROGRESSING);
    } else if let Some(told) = milestone.and_then(|milestone| told(milestone, now)) {
        set(&mut conditions, told);
    } else if rolling && !is_paused(deployment) {
        progress(deployment, &before, counts, new, &mut conditions, now);
    }
    let failing = new.into_iter().chain(old.iter().copied()).find_map(|replica_set| failure(replica_set));
    match failing {
        Some(failure) => set(&mut conditions, failure),
        None => conditions.retain(|condition| condition.type_ != REPLICA_FAILURE),
    }
    conditions
}

fn availability(available: bool, now: Timestamp) -> DeploymentCondition {
    let (status, reason, message) = if available {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    condition(AVAILABLE, status, reason, message.to_owned(), now)
}

fn told(milestone: &Milestone, now: Timestamp) -> Option<DeploymentCondition> {
    let (status, reason, message) = match milestone {
        Milestone::Paused => ("Unknown", PAUSED, "Deployment is paused".to_owned()),
        Milestone::Resumed => ("Unknown", "DeploymentResumed", "Deployment is resumed".to_owned()),
        Milestone::Found(name) => ("True", "FoundNewReplicaSet", format!("Found new replica set \"{name}\"")),
        Milestone::Created(name) => ("True", "NewReplicaSetCreated", format!("Created new replica set \"{name}\"")),
        Milestone::CreateFailed(message) => ("False", "ReplicaSetCreateError", message.clone()),
        Milestone::Collided => return None,
    };
    Some(condition(PROGRESSING, status, reason, message, now))
}

fn progress(
    deployment: &Deployment,
    before: &DeploymentStatus,
    counts: &DeploymentStatus,
    new: Option<&Arc<ReplicaSet>>,
    conditions: &mut Vec<DeploymentCondition>,
    now: Timestamp,
) {
    let current = find(conditions, PROGRESSING).cloned();
    let finished = current.as_ref().is_some_and(|current| current.reason.as_deref() == Some(NEW_AVAILABLE));
    if finished && counts.replicas == counts.updated_replicas {
        // The rollout is over; pods that come and go later are not a lack of progress.
        return;
    }
    let subject = match new.and_then(|new| new.metadata.name.as_deref()) {
        Some(name) => format!("ReplicaSet \"{name}\""),
        None => format!("Deployment \"{}\"", deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    if is_complete(deployment, counts) {
        let message = format!("{subject} has successfully progressed.");
        set(conditions, condition(PROGRESSING, "True", NEW_AVAILABLE, message, now));
    } else if has_progressed(before, counts) {
        let message = format!("{subject} is progressing.");
        let mut moving = condition(PROGRESSING, "True", "ReplicaSetUpdated", message, now);
        if let Some(current) = current.filter(|current| current.status == "True") {
            moving.last_transition_time = current.last_transition_time;
        }
        // Written even if it says the same: the time of the last update starts the deadline anew.
        conditions.retain(|condition| condition.type_ != PROGRESSING);
        conditions.push(moving);
    } else if current.is_some_and(|current| is_late(deployment, &current, now)) {
        let message = format!("{subject} has timed out progressing.");
        set(conditions, condition(PROGRESSING, "False", TIMED_OUT, message, now));
    }
}

fn is_complete(deployment: &Deployment, counts: &DeploymentStatus) -> bool {
    let replicas = Bounds::of(deployment).replicas;
    [counts.replicas, counts.updated_replicas, counts.available_replicas]
        .iter()
        .all(|count| count.unwrap_or(0) == replicas)
}

/// More new pods, fewer old ones, or more that are ready or available.
fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let old_pods = |status: &DeploymentStatus| status.replicas.unwrap_or(0) - status.updated_replicas.unwrap_or(0);
    after.updated_replicas > before.updated_replicas
        || old_pods(after) < old_pods(before)
        || after.ready_replicas > before.ready_replicas
        || after.available_replicas > before.available_replicas
}

fn deadline(deployment: &Deployment) -> Option<Duration> {
    let seconds = deployment.spec.as_ref().and_then(|spec| spec.progress_deadline_seconds);
    let seconds = seconds.filter(|seconds| *seconds != NO_DEADLINE)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn is_late(deployment: &Deployment, current: &DeploymentCondition, now: Timestamp) -> bool {
    match current.reason.as_deref() {
        Some(TIMED_OUT) => true,
        Some(NEW_AVAILABLE) => false,
        _ => remaining(deployment, current, now).is_some_and(|left| left.is_zero()),
    }
}

fn remaining(deployment: &Deployment, current: &DeploymentCondition, now: Timestamp) -> Option<Duration> {
    let since = current.last_update_time.as_ref()?.0;
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    Some(deadline(deployment)?.saturating_sub(waited))
}

/// When a rollout that does not move will have missed its deadline.
pub(super) fn until_deadline(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
    let current = find(status.conditions.as_deref()?, PROGRESSING)?;
    let over = matches!(current.reason.as_deref(), Some(NEW_AVAILABLE | TIMED_OUT | PAUSED));
    if over || is_paused(deployment) {
        return None;
    }
    // Timestamps are whole seconds; one more makes sure that the deadline has passed by then.
    Some(remaining(deployment, current, now)? + Duration::from_secs(1))
}

fn failure(replica_set: &ReplicaSet) -> Option<DeploymentCondition> {
    let conditions = replica_set.status.as_ref()?.conditions.as_deref()?;
    let failing = conditions.iter().find(|condition| condition.type_ == REPLICA_FAILURE)?;
    Some(DeploymentCondition {
        type_: failing.type_.clone(),
        status: failing.status.clone(),
        reason: failing.reason.clone(),
        message: failing.message.clone(),
        last_transition_time: failing.last_transition_time.clone(),
        last_update_time: failing.last_transition_time.clone(),
    })
}
