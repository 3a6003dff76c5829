use serde_json::{Value, json};

use super::*;
use crate::controllers::deployment::history::TEMPLATE_HASH;

#[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
fn deployment(replicas: i32, image: &str, overlay: Value) -> Deployment {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 1, "annotations": {REVISION: "1"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]}}},
        "status": {"conditions": [{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]},
    });
    json_patch::merge(&mut value, &overlay);
    serde_json::from_value(value).unwrap()
}

fn replica_set(revision: i32, image: &str, replicas: i32, available: i32, desired: i32) -> Arc<ReplicaSet> {
    let value = json!({
        "metadata": {"name": format!("web-{revision}"), "uid": format!("r{revision}"), "generation": 1,
            "creationTimestamp": format!("2026-01-0{revision}T00:00:00Z"),
            "annotations": {REVISION: revision.to_string(), "deployment.kubernetes.io/desired-replicas":
                desired.to_string(), "deployment.kubernetes.io/max-replicas": (desired + 1).to_string()}},
        "spec": {"replicas": replicas, "selector": {}, "template": {
            "metadata": {"labels": {"app": "web", TEMPLATE_HASH: "x"}},
            "spec": {"containers": [{"name": "c", "image": image}]}}},
        "status": {"replicas": replicas, "availableReplicas": available, "observedGeneration": 1},
    });
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A plan in short: `create 2`, `web-1: 2 -> 1`, `revision 2`, `delete web-1`, `update web-1`.
fn steps(deployment: &Deployment, replica_sets: &[Arc<ReplicaSet>], busy: &[&str]) -> Vec<String> {
    let busy = busy.iter().map(|uid| (*uid).to_owned()).collect();
    let plan = plan(&Observed { deployment, replica_sets, busy });
    let name = |replica_set: &ReplicaSet| replica_set.metadata.name.clone().unwrap_or_default();
    let shown = plan.steps.iter().map(|step| match step {
        Step::Create(replica_set) => format!("create {}", replicas(replica_set)),
        Step::Update(replica_set) => format!("update {}", name(replica_set)),
        Step::Scale { replica_set, from, to } => format!("{}: {from} -> {to}", name(replica_set)),
        Step::SetRevision(revision) => format!("revision {revision}"),
        Step::Delete(replica_set) => format!("delete {}", name(replica_set)),
    });
    shown.collect()
}

type Row<'a> = (&'a Deployment, Vec<Arc<ReplicaSet>>, &'a [&'a str]);

#[test]
fn a_rolling_update_step_by_step() {
    let new = deployment(2, "i:2", json!({}));
    let rolled = deployment(2, "i:2", json!({"metadata": {"annotations": {REVISION: "2"}}}));
    let old = |replicas, available| replica_set(1, "i:1", replicas, available, 2);
    let next = |replicas, available| replica_set(2, "i:2", replicas, available, 2);
    let table: Vec<Row<'_>> = vec![
        (&new, vec![], &["create 2"]),
        (&new, vec![old(2, 2)], &["create 1"]),
        (&new, vec![old(2, 2), next(1, 0)], &["revision 2"]),
        (&rolled, vec![old(2, 2), next(1, 0)], &[]),
        (&rolled, vec![old(2, 2), next(1, 1)], &["web-1: 2 -> 1"]),
        (&rolled, vec![old(1, 1), next(1, 1)], &["web-2: 1 -> 2"]),
        (&rolled, vec![old(1, 1), next(2, 1)], &[]),
        (&rolled, vec![old(1, 1), next(2, 2)], &["web-1: 1 -> 0"]),
        (&rolled, vec![old(0, 0), next(2, 2)], &[]),
        // A rollout that does not come up is replaced without touching what serves.
        (&rolled, vec![old(2, 2), replica_set(3, "i:bad", 1, 0, 2), next(0, 0)], &["update web-2", "revision 4"]),
    ];
    for (deployment, replica_sets, expected) in table {
        assert_eq!(steps(deployment, &replica_sets, &[]), expected, "{replica_sets:#?}");
    }
}

#[test]
fn recreate_waits_for_the_old_pods_to_be_gone() {
    let recreate = json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}});
    let deployment = deployment(2, "i:2", recreate);
    let old = |replicas| replica_set(1, "i:1", replicas, replicas, 2);
    assert_eq!(steps(&deployment, &[old(2)], &["r1"]), ["web-1: 2 -> 0"]);
    assert!(steps(&deployment, &[old(0)], &["r1"]).is_empty());
    assert_eq!(steps(&deployment, &[old(0)], &[]), ["create 2"]);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let paused = json!({"spec": {"paused": true}});
    let old = replica_set(1, "i:1", 2, 2, 2);
    assert!(steps(&deployment(2, "i:2", paused.clone()), std::slice::from_ref(&old), &[]).is_empty());
    assert_eq!(steps(&deployment(5, "i:2", paused.clone()), &[old], &[]), ["web-1: 2 -> 5"]);
    let observed = deployment(2, "i:2", paused);
    let plan = plan(&Observed { deployment: &observed, replica_sets: &[], busy: vec![] });
    assert_eq!(plan.milestone, Some(Milestone::Paused));
}

#[test]
fn scaling_during_a_rollout_is_shared() {
    let deployment = deployment(20, "i:2", json!({"metadata": {"annotations": {REVISION: "2"}}}));
    let replica_sets = [replica_set(1, "i:1", 8, 8, 10), replica_set(2, "i:2", 3, 3, 10)];
    assert_eq!(steps(&deployment, &replica_sets, &[]), ["web-1: 8 -> 15", "web-2: 3 -> 6"]);
}

#[test]
fn history_is_cut_only_when_the_rollout_is_over() {
    let limit = json!({"metadata": {"annotations": {REVISION: "3"}}, "spec": {"revisionHistoryLimit": 1}});
    let mut complete = limit.clone();
    let counts =
        json!({"status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}});
    json_patch::merge(&mut complete, &counts);
    let all = [replica_set(1, "i:1", 0, 0, 2), replica_set(2, "i:2", 0, 0, 2), replica_set(3, "i:3", 2, 2, 2)];
    assert!(steps(&deployment(2, "i:3", limit), &all, &[]).is_empty());
    assert_eq!(steps(&deployment(2, "i:3", complete), &all, &[]), ["delete web-1"]);
}

#[test]
fn nothing_happens_to_a_deployment_that_is_being_deleted() {
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(steps(&deployment(2, "i:2", leaving), &[], &[]).is_empty());
}
