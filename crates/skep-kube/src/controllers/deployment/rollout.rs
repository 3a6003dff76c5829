//! How far a rolling update may go in one step.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::quota::{Rounding, resolve};
use super::history::{DESIRED_REPLICAS, MAX_REPLICAS};

/// The limits that a Deployment's strategy sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) replicas: i32,
    pub(super) surge: i32,
    pub(super) unavailable: i32,
}

impl Bounds {
    pub(super) fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.clone().unwrap_or_default();
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.unwrap_or_default();
        if strategy.type_.as_deref() == Some("Recreate") {
            return Self { replicas, surge: 0, unavailable: 0 };
        }
        let quarter = || IntOrString::String("25%".to_owned());
        let rolling = strategy.rolling_update.unwrap_or_default();
        let surge = resolve(&rolling.max_surge.unwrap_or_else(quarter), replicas, Rounding::Up);
        let unavailable = resolve(&rolling.max_unavailable.unwrap_or_else(quarter), replicas, Rounding::Down);
        // With neither, nothing could ever move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { replicas, surge, unavailable: unavailable.min(replicas) }
    }

    pub(super) fn most(&self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }

    pub(super) fn least_available(&self) -> i32 {
        self.replicas - self.unavailable
    }

    /// Scaling events are recognised by comparing these with the Deployment.
    pub(super) fn annotate(&self, annotations: &mut BTreeMap<String, String>) {
        annotations.insert(DESIRED_REPLICAS.into(), self.replicas.to_string());
        annotations.insert(MAX_REPLICAS.into(), self.most().to_string());
    }
}

pub(super) fn replicas(replica_set: &ReplicaSet) -> i32 {
    replica_set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The pods that a ReplicaSet can be counted on for. One that was made smaller a moment ago still reports those that it
/// is about to give up.
pub(super) fn available(replica_set: &ReplicaSet) -> i32 {
    let reported = replica_set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0);
    reported.min(replicas(replica_set))
}

pub(super) fn total<'a>(replica_sets: impl IntoIterator<Item = &'a Arc<ReplicaSet>>) -> i32 {
    replica_sets.into_iter().map(|replica_set| replicas(replica_set)).fold(0, i32::saturating_add)
}

/// The size of the new ReplicaSet, given how many pods all the others ask for.
pub(super) fn new_size(bounds: &Bounds, current: i32, others: i32) -> i32 {
    if current >= bounds.replicas {
        return bounds.replicas;
    }
    let room = bounds.most().saturating_sub(current.saturating_add(others)).max(0);
    current + room.min(bounds.replicas - current)
}

/// The sizes of the old ReplicaSets (oldest first), once as many pods as allowed have been given up.
pub(super) fn old_sizes(bounds: &Bounds, new: &ReplicaSet, old: &[&Arc<ReplicaSet>]) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|replica_set| replicas(replica_set)).collect();
    let all = total(old.iter().copied()).saturating_add(replicas(new));
    let new_unavailable = replicas(new) - available(new);
    let mut expendable = all - bounds.least_available() - new_unavailable;
    if expendable <= 0 {
        return sizes;
    }
    // Pods that serve nobody go first: giving them up costs nothing.
    for (size, replica_set) in sizes.iter_mut().zip(old) {
        let given = (*size - available(replica_set)).clamp(0, expendable);
        *size -= given;
        expendable -= given;
    }
    // What remains are available pods; of those, only the ones above the minimum may go.
    let serving = old.iter().map(|replica_set| available(replica_set)).sum::<i32>().saturating_add(available(new));
    let mut expendable = serving - bounds.least_available();
    for size in &mut sizes {
        let given = (*size).clamp(0, expendable.max(0));
        *size -= given;
        expendable -= given;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn bounds_of(replicas: i32, surge: &Value, unavailable: &Value) -> Bounds {
        let deployment = json!({"spec": {"replicas": replicas, "selector": {}, "template": {}, "strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}});
        Bounds::of(&serde_json::from_value(deployment).unwrap())
    }

    fn replica_set(replicas: i32, available: i32) -> Arc<ReplicaSet> {
        let value = json!({"spec": {"replicas": replicas, "selector": {}},
            "status": {"replicas": replicas, "availableReplicas": available}});
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn surge_rounds_up_and_unavailable_rounds_down() {
        let table = [
            (10, json!("25%"), json!("25%"), 3, 2),
            (1, json!("25%"), json!("25%"), 1, 0),
            (1, json!("0%"), json!("25%"), 0, 1),
            (4, json!(0), json!(0), 0, 1),
            (2, json!(5), json!(5), 5, 2),
            (0, json!("25%"), json!("25%"), 0, 0),
        ];
        for (replicas, surge, unavailable, most, least) in table {
            let bounds = bounds_of(replicas, &surge, &unavailable);
            assert_eq!((bounds.surge, bounds.unavailable), (most, least), "{replicas} {surge} {unavailable}");
        }
    }

    #[test]
    fn the_new_replica_set_grows_into_the_room_there_is() {
        let bounds = bounds_of(10, &json!(3), &json!(2));
        for (current, others, expected) in [(0, 10, 3), (3, 10, 3), (3, 8, 5), (10, 0, 10), (12, 0, 10), (0, 20, 0)] {
            assert_eq!(new_size(&bounds, current, others), expected, "{current} + {others}");
        }
    }

    #[test]
    fn old_replica_sets_shrink_only_above_the_minimum() {
        let bounds = bounds_of(10, &json!(3), &json!(2));
        let table = [
            // Nothing of the new one is available yet: only the two that may be missing go.
            (replica_set(3, 0), vec![replica_set(10, 10)], vec![8]),
            (replica_set(3, 3), vec![replica_set(10, 10)], vec![5]),
            (replica_set(3, 0), vec![replica_set(8, 8)], vec![8]),
            // Broken pods go first, wherever they are.
            (replica_set(0, 0), vec![replica_set(8, 8), replica_set(5, 0)], vec![8, 0]),
            (replica_set(10, 10), vec![replica_set(3, 3)], vec![0]),
            // This one was just made smaller and still reports what it had.
            (replica_set(6, 5), vec![replica_set(5, 8)], vec![3]),
        ];
        for (new, old, expected) in table {
            let references: Vec<_> = old.iter().collect();
            assert_eq!(old_sizes(&bounds, &new, &references), expected, "{new:?} {old:?}");
        }
    }
}
