//! The parity suite on a real control plane: its expectations hold, and the golden recordings are still true.
//!
//! `UPDATE_GOLDEN=1` writes the recordings anew; `SCENARIOS=watch/` runs only scenarios whose name has that text.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use skep_conformance::control_plane::ControlPlane;
use skep_conformance::kube::{
    Caller, ClientServer, callers, compare, golden, known_differences, load, remove, run_all, write_golden,
};

/// Scenarios under way at once.
const AT_ONCE: usize = 8;

#[test]
fn every_scenario_has_a_golden_recording_and_nothing_else_has() {
    let scenarios = load().unwrap();
    assert!(scenarios.len() >= 120, "only {} scenarios", scenarios.len());
    for scenario in &scenarios {
        let recording = golden(&scenario.name).unwrap();
        assert_eq!(recording.scenario, scenario.name);
        assert_eq!(recording.exchanges.len(), scenario.steps.len(), "{}", scenario.name);
    }
    let names: BTreeSet<String> = scenarios.into_iter().map(|scenario| scenario.name).collect();
    let folder = skep_conformance::kube::folder().join("golden");
    for area in std::fs::read_dir(&folder).unwrap() {
        for file in std::fs::read_dir(area.unwrap().path()).unwrap() {
            let path = file.unwrap().path().with_extension("");
            let name = path.strip_prefix(&folder).unwrap().display().to_string();
            assert!(names.contains(&name), "there is a golden recording of {name}, but no scenario");
        }
    }
    for known in known_differences().unwrap() {
        assert!(names.contains(&known.scenario), "a known difference is about {}, which is gone", known.scenario);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_golden_recordings_are_true_on_a_real_server() {
    let Some(control_plane) = ControlPlane::start_or_skip("the_golden_recordings_are_true_on_a_real_server").await
    else {
        return;
    };
    let mut scenarios = load().unwrap();
    if let Ok(wanted) = std::env::var("SCENARIOS") {
        scenarios.retain(|scenario| scenario.name.contains(&wanted));
    }
    let mut clients = Vec::new();
    for caller in callers(&scenarios) {
        let client = client_of(&control_plane, &caller).await;
        clients.push((caller, client));
    }
    let server = Arc::new(ClientServer::new(clients));
    let outcomes = run_all(Arc::clone(&server), scenarios.clone(), AT_ONCE).await;
    assert_eq!(outcomes.len(), scenarios.len(), "some scenarios did not end");

    let mut problems = Vec::new();
    for outcome in &outcomes {
        problems.extend(outcome.failures.clone());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            write_golden(&outcome.recording).unwrap();
        }
        let expected = golden(&outcome.recording.scenario).unwrap();
        problems.extend(compare(&expected, &outcome.recording).iter().map(ToString::to_string));
    }
    remove(server.as_ref(), &outcomes).await;
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

async fn client_of(control_plane: &ControlPlane, caller: &Caller) -> Client {
    let (name, group) = match caller {
        Caller::User { name, group } => (name.as_str(), group.as_deref()),
        Caller::Admin | Caller::Anonymous => ("admin", Some("system:masters")),
    };
    let identity = control_plane.authority().client(name, group).unwrap();
    let mut kubeconfig = Kubeconfig::from_yaml(&control_plane.kubeconfig(&identity)).unwrap();
    if *caller == Caller::Anonymous {
        kubeconfig.auth_infos.iter_mut().for_each(|user| user.auth_info = Some(AuthInfo::default()));
    }
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // Every answer is to be seen, those that ask for another try too.
    config.default_retry = false;
    Client::try_from(config).unwrap()
}
