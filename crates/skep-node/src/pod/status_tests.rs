use serde_json::{Value, json};

use super::*;
use crate::pod::state::End;

fn pod(policy: &str, init: &Value, status: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "generation": 2},
        "spec": {"restartPolicy": policy, "initContainers": init,
            "containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:1"}]},
        "status": status,
    }))
    .unwrap()
}

fn state(pod: &Pod) -> PodState {
    PodState::new(pod, [10, 244, 0, 1].into())
}

fn end(code: i32) -> End {
    let now = Timestamp::now();
    let reason = if code == 0 { "Completed" } else { "Error" }.to_owned();
    End { id: "skep://1".into(), code, signal: None, reason, message: None, started: Some(now), finished: now }
}

fn condition(status: &PodStatus, type_: &str) -> (String, Option<String>, Option<String>) {
    let mut all = status.conditions.iter().flatten();
    let found = all.find(|condition| condition.type_ == type_).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

#[test]
fn phases() {
    // What container a and b do: waiting, running, ended with 0 or 1, or waiting after a crash.
    let table = [
        ("Always", "ww", "Pending"),
        ("Always", "rw", "Pending"),
        ("Always", "rr", "Running"),
        ("Always", "r1", "Running"),
        ("Always", "00", "Running"),
        ("Always", "cc", "Running"),
        ("OnFailure", "00", "Succeeded"),
        ("OnFailure", "01", "Running"),
        ("OnFailure", "r0", "Running"),
        ("Never", "00", "Succeeded"),
        ("Never", "01", "Failed"),
        ("Never", "r1", "Running"),
    ];
    for (policy, letters, expected) in table {
        let pod = pod(policy, &json!([]), &json!({}));
        let mut state = state(&pod);
        for (container, letter) in state.containers.iter_mut().zip(letters.chars()) {
            match letter {
                'r' => container.run("skep://1".into()),
                '0' => container.end(end(0)),
                '1' => container.end(end(1)),
                'c' => {
                    container.end(end(1));
                    container.wait("CrashLoopBackOff", None);
                }
                _ => {}
            }
        }
        assert_eq!(status(&pod, &state).phase.as_deref(), Some(expected), "{policy} {letters}");
    }
}

#[test]
fn init_containers_come_first() {
    let pod = pod("Never", &json!([{"name": "first"}, {"name": "side", "restartPolicy": "Always"}]), &json!({}));
    let mut state = state(&pod);
    let report = status(&pod, &state);
    assert_eq!(report.phase.as_deref(), Some("Pending"));
    let message = "containers with incomplete status: [first side]".to_owned();
    let expected = ("False".to_owned(), Some("ContainersNotInitialized".to_owned()), Some(message));
    assert_eq!(condition(&report, "Initialized"), expected);

    state.init[0].end(end(1));
    assert_eq!(status(&pod, &state).phase.as_deref(), Some("Failed"));
    state.init[0].end(end(0));
    state.init[1].run("skep://2".into());
    state.init[1].started = true;
    assert_eq!(condition(&status(&pod, &state), "Initialized").0, "True");
    // A sidecar counts for readiness.
    for container in &mut state.containers {
        container.run("skep://3".into());
        container.ready = true;
    }
    let (ready, _, message) = condition(&status(&pod, &state), "ContainersReady");
    assert_eq!((ready.as_str(), message.as_deref()), ("False", Some("containers with unready status: [side]")));
}

#[test]
fn transition_times_are_kept() {
    let old = "2020-01-01T00:00:00Z";
    let pod = pod(
        "Always",
        &json!([]),
        &json!({"conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": old},
            {"type": "ContainersReady", "status": "True", "lastTransitionTime": old}]}),
    );
    let report = status(&pod, &state(&pod));
    let time = |type_: &str| {
        let mut all = report.conditions.iter().flatten();
        let found = all.find(|condition| condition.type_ == type_).unwrap();
        serde_json::to_value(&found.last_transition_time).unwrap()
    };
    assert_eq!(time("Ready"), old);
    assert_ne!(time("ContainersReady"), old);
}

#[test]
fn readiness_gates_are_waited_for() {
    let mut pod = pod("Always", &json!([]), &json!({}));
    pod.spec.as_mut().unwrap().readiness_gates =
        Some(serde_json::from_value(json!([{"conditionType": "example.com/open"}])).unwrap());
    let mut state = state(&pod);
    for container in &mut state.containers {
        container.run("skep://1".into());
        container.ready = true;
    }
    let (ready, reason, _) = condition(&status(&pod, &state), "Ready");
    assert_eq!((ready.as_str(), reason.as_deref()), ("False", Some("ReadinessGatesNotReady")));
    pod.status =
        Some(serde_json::from_value(json!({"conditions": [{"type": "example.com/open", "status": "True"}]})).unwrap());
    assert_eq!(condition(&status(&pod, &state), "Ready").0, "True");
}

#[test]
fn a_container_that_ran_before_the_node_stopped_is_restarted_and_counted() {
    let pod = pod(
        "Always",
        &json!([]),
        &json!({"startTime": "2020-01-01T00:00:00Z", "containerStatuses": [
            {"name": "a", "image": "i:1", "imageID": "i:1", "ready": true, "restartCount": 4, "containerID": "skep://9",
                "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]}),
    );
    let mut state = state(&pod);
    let container = &mut state.containers[0];
    assert_eq!(container.ended().map(|end| (end.code, end.reason.as_str())), Some((137, "ContainerStatusUnknown")));
    container.run("skep://10".into());
    assert_eq!(container.restarts, 5);
    let report = status(&pod, &state);
    assert_eq!(serde_json::to_value(report.start_time).unwrap(), "2020-01-01T00:00:00Z");
    let last = report.container_statuses.unwrap()[0].last_state.clone().unwrap();
    assert_eq!(last.terminated.unwrap().exit_code, 137);
}

#[test]
fn what_comes_first_begins_anew_in_every_life() {
    let ended = |name: &str| {
        json!({"name": name, "image": "i", "imageID": "", "ready": true, "restartCount": 2,
        "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}})
    };
    let running = |name: &str| {
        json!({"name": name, "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "started": true, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}})
    };
    let init = json!([{"name": "first", "image": "i"}, {"name": "beside", "image": "i", "restartPolicy": "Always"}]);
    let known = json!({"initContainerStatuses": [ended("first"), running("beside")],
        "containerStatuses": [running("a"), running("b")]});
    let pod = pod("Always", &init, &known);
    let state = state(&pod);
    for (name, last) in [("first", "Completed"), ("beside", "ContainerStatusUnknown")] {
        let container = state.container(name).unwrap();
        assert!(container.ended().is_none() && !container.started, "{name} has done nothing in this life");
        assert_eq!(container.last.as_ref().map(|end| end.reason.as_str()), Some(last));
    }
    assert!(!initialized(pod.spec.as_ref().unwrap(), &state));
}
