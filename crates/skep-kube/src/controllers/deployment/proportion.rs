//! Scaling in the middle of a rollout: every ReplicaSet gets its share.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::history::{DESIRED_REPLICAS, MAX_REPLICAS, age_key, annotation};
use super::rollout::{Bounds, available, replicas, total};

/// Whether somebody has changed the number of replicas since the ReplicaSets were last sized.
pub(super) fn is_scaled(bounds: &Bounds, replica_sets: &[Arc<ReplicaSet>]) -> bool {
    let active = replica_sets.iter().filter(|replica_set| replicas(replica_set) > 0);
    let sized_for = |replica_set: &ReplicaSet| annotation(&replica_set.metadata, DESIRED_REPLICAS)?.parse::<i32>().ok();
    active.filter_map(|replica_set| sized_for(replica_set)).any(|desired| desired != bounds.replicas)
}

/// The new sizes after a change of the number of replicas. ReplicaSets that are not named keep theirs.
pub(super) fn sizes<'a>(
    deployment: &Deployment,
    bounds: &Bounds,
    new: Option<&'a Arc<ReplicaSet>>,
    old: &[&'a Arc<ReplicaSet>],
) -> Vec<(&'a Arc<ReplicaSet>, i32)> {
    let all: Vec<_> = new.into_iter().chain(old.iter().copied()).collect();
    let active: Vec<_> = all.iter().copied().filter(|replica_set| replicas(replica_set) > 0).collect();
    match (active.as_slice(), new) {
        ([only], _) => return vec![(only, bounds.replicas)],
        ([], Some(new)) => return vec![(new, bounds.replicas)],
        ([], None) => return old.last().map(|latest| (*latest, bounds.replicas)).into_iter().collect(),
        _ => {}
    }
    if let Some(new) = new.filter(|new| is_saturated(bounds, new)) {
        let empty = old.iter().filter(|replica_set| replicas(replica_set) > 0).map(|replica_set| (*replica_set, 0));
        return std::iter::once((new, bounds.replicas)).chain(empty).collect();
    }
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref()?.type_.as_deref());
    if strategy == Some("Recreate") {
        // Sizes are the rollout's business; being named here only brings the annotations up to date.
        return active.into_iter().map(|replica_set| (replica_set, replicas(replica_set))).collect();
    }
    shares(deployment, bounds, active)
}

fn is_saturated(bounds: &Bounds, new: &ReplicaSet) -> bool {
    let sized_for = annotation(&new.metadata, DESIRED_REPLICAS).and_then(|text| text.parse().ok());
    replicas(new) == bounds.replicas && sized_for == Some(bounds.replicas) && available(new) == bounds.replicas
}

fn shares<'a>(
    deployment: &Deployment,
    bounds: &Bounds,
    mut active: Vec<&'a Arc<ReplicaSet>>,
) -> Vec<(&'a Arc<ReplicaSet>, i32)> {
    let allowed = if bounds.replicas > 0 { bounds.most() } else { 0 };
    let change = allowed - total(active.iter().copied());
    // The largest share of a change, and what rounding leaves over, goes to the largest ReplicaSet; between equals,
    // growth goes to the newer one and shrinking to the older one.
    active.sort_by_key(|replica_set| age_key(replica_set));
    if change > 0 {
        active.reverse();
    }
    active.sort_by_key(|replica_set| Reverse(replicas(replica_set)));
    let mut left = change;
    let mut sizes = Vec::with_capacity(active.len());
    for replica_set in active {
        let share = fraction(deployment, bounds, replica_set);
        let share = if change > 0 { share.clamp(0, left) } else { share.clamp(left, 0) };
        left -= share;
        sizes.push((replica_set, replicas(replica_set) + share));
    }
    if let Some((_, first)) = sizes.first_mut() {
        *first = (*first + left).max(0);
    }
    sizes
}

/// By how much a ReplicaSet would change if all grew or shrank by the same factor.
fn fraction(deployment: &Deployment, bounds: &Bounds, replica_set: &ReplicaSet) -> i32 {
    if bounds.replicas == 0 {
        return -replicas(replica_set);
    }
    let before = annotation(&replica_set.metadata, MAX_REPLICAS).and_then(|text| text.parse::<i64>().ok());
    let before = before.or_else(|| Some(i64::from(deployment.status.as_ref()?.replicas?))).filter(|before| *before > 0);
    let Some(before) = before else { return 0 };
    let current = i64::from(replicas(replica_set));
    // Half a pod rounds away from zero.
    let scaled = (2 * current * i64::from(bounds.most()) + before) / (2 * before);
    i32::try_from(scaled - current).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn replica_set(name: &str, replicas: i32, desired: i32, most: i32) -> Arc<ReplicaSet> {
        let value = json!({"metadata": {"name": name, "uid": name, "creationTimestamp": format!("2026-01-0{name}T00:00:00Z"),
                "annotations": {DESIRED_REPLICAS: desired.to_string(), MAX_REPLICAS: most.to_string()}},
            "spec": {"replicas": replicas, "selector": {}}, "status": {"replicas": replicas}});
        Arc::new(serde_json::from_value(value).unwrap())
    }

    fn sized(replicas: i32, surge: i32, new: i32, old: &[i32], before: i32) -> Vec<i32> {
        let deployment: Deployment = serde_json::from_value(json!({"spec": {"replicas": replicas, "selector": {},
            "template": {}, "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 2}}}}))
        .unwrap();
        let new = replica_set("9", new, before, before + surge);
        let old: Vec<_> = old
            .iter()
            .enumerate()
            .map(|(index, size)| replica_set(&(index + 1).to_string(), *size, before, before + surge))
            .collect();
        let references: Vec<_> = old.iter().collect();
        let sizes = sizes(&deployment, &Bounds::of(&deployment), Some(&new), &references);
        let size_of = |wanted: &Arc<ReplicaSet>| {
            sizes
                .iter()
                .find(|(found, _)| Arc::ptr_eq(found, wanted))
                .map_or(super::replicas(wanted), |(_, size)| *size)
        };
        std::iter::once(&new).chain(&old).map(size_of).collect()
    }

    /// Replicas, surge, new size, old sizes, replicas before; expected sizes.
    type Row = (i32, i32, i32, &'static [i32], i32, &'static [i32]);

    #[test]
    fn shares_follow_sizes() {
        let table: [Row; 7] = [
            // The documented example: 10 replicas with a surge of 3, scaled to 15 during a rollout of 5 new and 8 old.
            (15, 3, 5, &[8], 10, &[7, 11]),
            (10, 0, 5, &[5], 20, &[5, 5]),
            (5, 0, 5, &[5], 10, &[3, 2]),
            (0, 0, 3, &[4], 10, &[0, 0]),
            (20, 0, 10, &[], 10, &[20]),
            (20, 0, 0, &[10], 10, &[0, 20]),
            (2, 0, 0, &[], 10, &[2]),
        ];
        for (replicas, surge, new, old, before, expected) in table {
            assert_eq!(sized(replicas, surge, new, old, before), expected, "{replicas} {surge} {new} {old:?} {before}");
        }
    }

    #[test]
    fn a_scaled_deployment_is_recognised_by_the_annotations() {
        let bounds = Bounds { replicas: 3, surge: 1, unavailable: 0 };
        assert!(is_scaled(&bounds, &[replica_set("1", 2, 2, 3)]));
        assert!(!is_scaled(&bounds, &[replica_set("1", 3, 3, 4), replica_set("2", 0, 9, 9)]));
    }
}
