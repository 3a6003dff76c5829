use serde_json::{Value, json};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "literals read better in tables")]
fn set(replicas: i32, overlay: Value) -> StatefulSet {
    let mut value = json!({
        "metadata": {"name": "db", "namespace": "n", "uid": "s"},
        "spec": {"replicas": replicas, "selector": {}, "template": {}, "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
    });
    json_patch::merge(&mut value, &overlay);
    serde_json::from_value(value).unwrap()
}

/// `0` a healthy pod, `0!` not ready, `0x` failed, `0~` terminating; `'` marks the new revision.
fn pod(short: &str) -> Arc<Pod> {
    let number: String = short.chars().filter(char::is_ascii_digit).collect();
    let name = format!("db-{number}");
    let phase = if short.contains('x') { "Failed" } else { "Running" };
    let ready = if short.contains('!') { "False" } else { "True" };
    let deletion = short.contains('~').then_some("2026-01-01T00:00:00Z");
    let revision = if short.contains('\'') { "new" } else { "old" };
    let value = json!({
        "metadata": {"name": name, "uid": number, "deletionTimestamp": deletion, "labels": {
            "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": number}},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    });
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A plan in short: `+0` creates, `-0` deletes; `'` marks the new revision.
fn steps(set: &StatefulSet, pods: &[&str]) -> Vec<String> {
    let pods: Vec<_> = pods.iter().map(|short| pod(short)).collect();
    let revisions = Revisions {
        current: "old".into(),
        current_template: k8s_openapi::api::core::v1::PodTemplateSpec::default(),
        update: "new".into(),
        update_template: k8s_openapi::api::core::v1::PodTemplateSpec::default(),
    };
    let shown = |sign: &str, pod: &Pod| {
        let number = pod.metadata.name.as_deref().unwrap().trim_start_matches("db-");
        let mark = if revision_of(pod) == Some("new") { "'" } else { "" };
        format!("{sign}{number}{mark}")
    };
    let plan = plan(&Observed { set, pods: &pods, revisions: &revisions }, Timestamp::now());
    let steps = plan.iter().map(|step| match step {
        Step::Create(pod) => shown("+", pod),
        Step::Delete(pod) => shown("-", pod),
        Step::Update(pod) => shown("=", pod),
    });
    steps.collect()
}

#[test]
fn plans() {
    let parallel = || json!({"spec": {"podManagementPolicy": "Parallel"}});
    let on_delete = || json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}});
    let partition = || json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}});
    let start = || json!({"spec": {"ordinals": {"start": 5}}});
    let table: Vec<(i32, Value, &[&str], &[&str])> = vec![
        // One after the other.
        (3, json!({}), &[], &["+0'"]),
        (3, json!({}), &["0'!"], &[]),
        (3, json!({}), &["0'"], &["+1'"]),
        (3, json!({}), &["0'", "1'x"], &["-1'"]),
        (3, json!({}), &["0'", "2'"], &["+1'"]),
        (2, start(), &["5'"], &["+6'"]),
        // All at once.
        (3, parallel(), &[], &["+0'", "+1'", "+2'"]),
        (3, parallel(), &["0'!"], &["+1'", "+2'"]),
        // Down, from the highest ordinal.
        (1, json!({}), &["0'", "1'", "2'"], &["-2'"]),
        (1, json!({}), &["0'", "1'", "2'~"], &[]),
        (1, json!({}), &["0'", "1'!", "2'!"], &[]),
        (1, json!({}), &["0'", "1'", "2'!"], &["-2'"]),
        (1, json!({}), &["0'!", "1'", "2'"], &[]),
        (1, parallel(), &["0'", "1'", "2'"], &["-2'", "-1'"]),
        (0, json!({}), &["0'"], &["-0'"]),
        (1, start(), &["0'", "5'"], &["-0'"]),
        // Updates, from the highest ordinal, one at a time.
        (3, json!({}), &["0", "1", "2"], &["-2"]),
        (3, json!({}), &["0", "1", "2'!"], &[]),
        (3, json!({}), &["0", "1", "2'"], &["-1"]),
        (3, json!({}), &["0'", "1'", "2'"], &[]),
        (3, on_delete(), &["0", "1", "2"], &[]),
        (3, on_delete(), &["0", "1"], &["+2'"]),
        // Below the partition everything stays as it was.
        (4, partition(), &["0", "1", "2", "3"], &["-3"]),
        (4, partition(), &["0", "1", "2'", "3'"], &[]),
        (4, partition(), &["0", "2'", "3'"], &["+1"]),
        (4, partition(), &["0", "1", "3'"], &["+2'"]),
    ];
    for (replicas, overlay, pods, expected) in table {
        let found = steps(&set(replicas, overlay.clone()), pods);
        assert_eq!(found, expected, "{replicas} {overlay} {pods:?}");
    }
}

#[test]
fn a_pod_must_have_been_ready_for_long_enough() {
    let patient = json!({"spec": {"minReadySeconds": 30}});
    // These pods do not say since when they are ready.
    assert!(steps(&set(2, patient), &["0'"]).is_empty());
}
