//! What a Deployment needs next, from what can be seen of it.
//!
//! A plan goes only as far as is certain now; what follows is planned when the changes have come back.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::REVISION;
use super::conditions::{Milestone, PAUSED, TIMED_OUT, progressing};
use super::history::{annotation, find_new, new_replica_set, old, refreshed, superfluous};
use super::proportion::{self, is_scaled};
use super::rollout::{Bounds, new_size, old_sizes, replicas, total};

/// A Deployment and what belongs to it.
#[derive(Debug)]
pub(super) struct Observed<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) replica_sets: &'a [Arc<ReplicaSet>],
    /// The UIDs of ReplicaSets with pods that have not ended yet, terminating ones included.
    pub(super) busy: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Create(Box<ReplicaSet>),
    Update(Box<ReplicaSet>),
    Scale { replica_set: Box<ReplicaSet>, from: i32, to: i32 },
    SetRevision(String),
    Delete(Arc<ReplicaSet>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) milestone: Option<Milestone>,
}

pub(super) fn plan(observed: &Observed<'_>) -> Plan {
    let deployment = observed.deployment;
    if deployment.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let new = find_new(deployment, observed.replica_sets);
    let old = old(observed.replica_sets, new);
    let milestone = pause_milestone(deployment).or_else(|| found_milestone(deployment, new));
    let relabelled = bring_up_to_date(deployment, new, &old);
    let steps = if relabelled.is_empty() { resize(observed, new, &old) } else { relabelled };
    Plan { steps, milestone }
}

fn resize(observed: &Observed<'_>, new: Option<&Arc<ReplicaSet>>, old: &[&Arc<ReplicaSet>]) -> Vec<Step> {
    let deployment = observed.deployment;
    let bounds = Bounds::of(deployment);
    let mut steps = if is_paused(deployment) || is_scaled(&bounds, observed.replica_sets) {
        let sizes = proportion::sizes(deployment, &bounds, new, old);
        sizes.into_iter().filter_map(|(replica_set, to)| scale(replica_set, to, &bounds, true)).collect()
    } else if is_recreated(deployment) {
        recreate(observed, &bounds, new, old)
    } else {
        roll(deployment, &bounds, new, old)
    };
    if steps.is_empty() && (is_paused(deployment) || is_complete(deployment)) {
        steps.extend(superfluous(deployment, old).into_iter().map(Step::Delete));
    }
    steps
}

fn roll(
    deployment: &Deployment,
    bounds: &Bounds,
    new: Option<&Arc<ReplicaSet>>,
    old: &[&Arc<ReplicaSet>],
) -> Vec<Step> {
    let others = total(old.iter().copied());
    let Some(new) = new else { return create(deployment, old, new_size(bounds, 0, others), bounds) };
    if let Some(step) = scale(new, new_size(bounds, replicas(new), others), bounds, false) {
        return vec![step];
    }
    let sizes = old.iter().zip(old_sizes(bounds, new, old));
    sizes.filter_map(|(replica_set, to)| scale(replica_set, to, bounds, false)).collect()
}

fn recreate(
    observed: &Observed<'_>,
    bounds: &Bounds,
    new: Option<&Arc<ReplicaSet>>,
    old: &[&Arc<ReplicaSet>],
) -> Vec<Step> {
    let down: Vec<_> = old.iter().filter_map(|replica_set| scale(replica_set, 0, bounds, false)).collect();
    let is_busy = |replica_set: &&Arc<ReplicaSet>| {
        replica_set.metadata.uid.as_ref().is_some_and(|uid| observed.busy.contains(uid))
    };
    if !down.is_empty() || old.iter().any(is_busy) {
        return down;
    }
    match new {
        None => create(observed.deployment, old, bounds.replicas, bounds),
        Some(new) => scale(new, bounds.replicas, bounds, false).into_iter().collect(),
    }
}

fn create(deployment: &Deployment, old: &[&Arc<ReplicaSet>], replicas: i32, bounds: &Bounds) -> Vec<Step> {
    let created = new_replica_set(deployment, old, replicas, bounds);
    created.map(|replica_set| Step::Create(Box::new(replica_set))).into_iter().collect()
}

/// A step if the size changes; with `always`, also if only the annotations about the Deployment's size do.
fn scale(replica_set: &ReplicaSet, to: i32, bounds: &Bounds, always: bool) -> Option<Step> {
    let from = replicas(replica_set);
    let mut wanted = replica_set.clone();
    bounds.annotate(wanted.metadata.annotations.get_or_insert_default());
    wanted.spec.get_or_insert_default().replicas = Some(to);
    let needed = from != to || always && wanted != *replica_set;
    needed.then(|| Step::Scale { replica_set: Box::new(wanted), from, to })
}

/// Revision numbers and inherited annotations of the current ReplicaSet and of the Deployment.
fn bring_up_to_date(deployment: &Deployment, new: Option<&Arc<ReplicaSet>>, old: &[&Arc<ReplicaSet>]) -> Vec<Step> {
    let Some(new) = new else { return Vec::new() };
    let update = refreshed(deployment, new, old);
    let current = update.as_ref().unwrap_or(new);
    let revision = annotation(&current.metadata, REVISION);
    let told = annotation(&deployment.metadata, REVISION);
    let set = revision.filter(|revision| told != Some(revision)).map(|revision| Step::SetRevision(revision.to_owned()));
    update.map(|replica_set| Step::Update(Box::new(replica_set))).into_iter().chain(set).collect()
}

pub(super) fn is_paused(deployment: &Deployment) -> bool {
    deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true)
}

fn is_recreated(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref()?.type_.as_deref());
    strategy == Some("Recreate")
}

/// All pods are of the newest template and available, by the status.
fn is_complete(deployment: &Deployment) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    let replicas = Bounds::of(deployment).replicas;
    let counts = [status.replicas, status.updated_replicas, status.available_replicas];
    counts.iter().all(|count| count.unwrap_or(0) == replicas)
        && status.observed_generation >= deployment.metadata.generation
}

fn pause_milestone(deployment: &Deployment) -> Option<Milestone> {
    let reason = progressing(deployment).and_then(|condition| condition.reason.as_deref());
    match (is_paused(deployment), reason) {
        // Whoever missed the deadline stays late until the next rollout.
        (_, Some(TIMED_OUT)) | (true, Some(PAUSED)) => None,
        (true, _) => Some(Milestone::Paused),
        (false, Some(PAUSED)) => Some(Milestone::Resumed),
        (false, _) => None,
    }
}

fn found_milestone(deployment: &Deployment, new: Option<&Arc<ReplicaSet>>) -> Option<Milestone> {
    let new = new.filter(|_| progressing(deployment).is_none())?;
    Some(Milestone::Found(new.metadata.name.clone()?))
}

#[cfg(test)]
mod tests;
