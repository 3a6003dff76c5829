use serde_json::{Value, json};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
fn deployment(status: Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 3},
        "spec": {"replicas": 2, "selector": {}, "progressDeadlineSeconds": 60, "template": {"metadata": {},
            "spec": {"containers": [{"name": "c", "image": "i:2"}]}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
        "status": status,
    }))
    .unwrap()
}

fn replica_set(name: &str, image: &str, replicas: i32, available: i32) -> Arc<ReplicaSet> {
    let value = json!({
        "metadata": {"name": name, "uid": name},
        "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {
            "containers": [{"name": "c", "image": image}]}}},
        "status": {"replicas": replicas, "readyReplicas": available, "availableReplicas": available,
            "terminatingReplicas": 0},
    });
    Arc::new(serde_json::from_value(value).unwrap())
}

fn at(second: u32) -> Timestamp {
    format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60).parse().unwrap()
}

/// The conditions in short: `Available=True MinimumReplicasAvailable`.
fn told(status: &DeploymentStatus) -> Vec<String> {
    let conditions = status.conditions.iter().flatten();
    conditions.map(|one| format!("{}={} {}", one.type_, one.status, one.reason.as_deref().unwrap())).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
fn next(
    before: &DeploymentStatus,
    replica_sets: &[Arc<ReplicaSet>],
    milestone: Option<Milestone>,
    second: u32,
) -> DeploymentStatus {
    status(&deployment(serde_json::to_value(before).unwrap()), replica_sets, milestone.as_ref(), at(second))
}

#[test]
fn a_rollout_from_creation_to_the_end() {
    let new = |replicas, available| replica_set("web-2", "i:2", replicas, available);
    let created = next(&DeploymentStatus::default(), &[new(0, 0)], Some(Milestone::Created("web-2".into())), 0);
    assert_eq!(told(&created), ["Available=False MinimumReplicasUnavailable", "Progressing=True NewReplicaSetCreated"]);
    let started = next(&created, &[new(2, 0)], None, 1);
    assert_eq!(told(&started)[1], "Progressing=True ReplicaSetUpdated");
    assert_eq!((started.unavailable_replicas, started.updated_replicas), (Some(2), Some(2)));
    let done = next(&started, &[new(2, 2)], None, 2);
    let mut conditions = told(&done);
    conditions.sort();
    assert_eq!(conditions, ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]);
    let progress = done.conditions.as_ref().unwrap().iter().find(|one| one.type_ == "Progressing").unwrap();
    assert_eq!(progress.message.as_deref(), Some("ReplicaSet \"web-2\" has successfully progressed."));
    assert_eq!(progress.last_transition_time.as_ref().unwrap().0, at(0), "it was true all the time");
    assert_eq!(next(&done, &[new(2, 2)], None, 500), done, "nothing to write at rest");
    let flapped = next(&done, &[new(2, 1)], None, 600);
    assert!(told(&flapped).contains(&"Progressing=True NewReplicaSetAvailable".to_owned()), "{flapped:?}");
    assert!(told(&flapped).contains(&"Available=False MinimumReplicasUnavailable".to_owned()));
}

#[test]
fn a_rollout_that_does_not_move_misses_its_deadline() {
    let sets = [replica_set("web-1", "i:1", 2, 2), replica_set("web-2", "i:2", 1, 0)];
    let created = next(&DeploymentStatus::default(), &sets, Some(Milestone::Created("web-2".into())), 0);
    let moving = next(&created, &sets, None, 1);
    assert_eq!(next(&moving, &sets, None, 50), moving);
    let late = next(&moving, &sets, None, 70);
    assert!(told(&late).contains(&"Progressing=False ProgressDeadlineExceeded".to_owned()), "{late:?}");
    assert_eq!(next(&late, &sets, None, 99), late, "nothing to write at rest");
    let message =
        late.conditions.unwrap().into_iter().find_map(|one| one.message.filter(|text| text.contains("timed")));
    assert_eq!(message.as_deref(), Some("ReplicaSet \"web-2\" has timed out progressing."));
}

#[test]
fn failures_of_replica_sets_are_passed_on() {
    let mut failing = replica_set("web-2", "i:2", 2, 0).as_ref().clone();
    failing.status.as_mut().unwrap().conditions = serde_json::from_value(json!([
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}]))
    .unwrap();
    let status = next(&DeploymentStatus::default(), &[Arc::new(failing)], None, 0);
    assert!(told(&status).contains(&"ReplicaFailure=True FailedCreate".to_owned()), "{status:?}");
    let healed = next(&status, &[replica_set("web-2", "i:2", 2, 0)], None, 1);
    assert!(!told(&healed).iter().any(|one| one.starts_with("ReplicaFailure")));
}

#[test]
fn collisions_are_counted() {
    let status = next(&DeploymentStatus::default(), &[], Some(Milestone::Collided), 0);
    assert_eq!(status.collision_count, Some(1));
    assert_eq!(next(&status, &[], Some(Milestone::Collided), 1).collision_count, Some(2));
}
