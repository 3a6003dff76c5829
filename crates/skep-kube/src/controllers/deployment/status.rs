//! What a Deployment says about itself.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::jiff::Timestamp;

use super::conditions::{Milestone, conditions};
use super::history::{find_new, old};
use super::proportion::is_scaled;
use super::rollout::{Bounds, total};

/// The status of a Deployment, from the statuses of its ReplicaSets.
pub(super) fn status(
    deployment: &Deployment,
    replica_sets: &[Arc<ReplicaSet>],
    milestone: Option<&Milestone>,
    now: Timestamp,
) -> DeploymentStatus {
    let new = find_new(deployment, replica_sets);
    let old = old(replica_sets, new);
    let sum = |count: fn(&ReplicaSetStatus) -> Option<i32>| -> i32 {
        replica_sets.iter().filter_map(|replica_set| count(replica_set.status.as_ref()?)).sum()
    };
    let available = sum(|status| status.available_replicas);
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let collided = milestone == Some(&Milestone::Collided);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sum(|status| Some(status.replicas))),
        updated_replicas: new.and_then(|new| some(new.status.as_ref()?.replicas)),
        ready_replicas: some(sum(|status| status.ready_replicas)),
        available_replicas: some(available),
        unavailable_replicas: some((total(replica_sets) - available).max(0)),
        terminating_replicas: Some(sum(|status| status.terminating_replicas)),
        collision_count: if collided { Some(collisions.unwrap_or(0).saturating_add(1)) } else { collisions },
        conditions: None,
    };
    let leaving = deployment.metadata.deletion_timestamp.is_some();
    let rolling = !leaving && !is_scaled(&Bounds::of(deployment), replica_sets);
    let conditions = conditions(deployment, &status, new, &old, milestone, rolling, now);
    status.conditions = Some(conditions).filter(|conditions| !conditions.is_empty());
    status
}

/// Zero is left out, as the API server does.
fn some(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count != 0)
}

#[cfg(test)]
mod tests;
