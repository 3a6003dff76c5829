//! The parity suite on our server: its answers are those that the real server gave.
//!
//! `tests/parity-not-yet.txt` lists the scenarios that do not agree yet, `known-differences.yaml` the places that stay
//! different. The test fails when something that is not listed differs, and also when something that is listed agrees,
//! so that the lists can only shrink.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use skep_conformance::kube::{
    Caller, ClientServer, callers, compare, golden, known_differences, load, run_all, stale, unknown,
};
use skep_kube::auth::User;
use skep_kube::auth::identity::Certificate;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::auth::user::{AUTHENTICATED_GROUP, MASTERS_GROUP};
use skep_kube::server::Server;
use skep_kube::store::Store;

const AT_ONCE: usize = 8;
const NOT_YET: &str = include_str!("parity-not-yet.txt");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_answers_are_those_of_the_real_server() {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:6443").await.unwrap();
    let mut scenarios = load().unwrap();
    if let Ok(wanted) = std::env::var("SCENARIOS") {
        scenarios.retain(|scenario| scenario.name.contains(&wanted));
    }
    let clients = callers(&scenarios).into_iter().map(|caller| {
        let certificate = match &caller {
            Caller::Admin => Certificate::Good(User::new("admin", &[MASTERS_GROUP, AUTHENTICATED_GROUP])),
            Caller::Anonymous => Certificate::Absent,
            Caller::User { name, group } => {
                let groups: Vec<&str> = group.as_deref().into_iter().chain([AUTHENTICATED_GROUP]).collect();
                Certificate::Good(User::new(name.as_str(), &groups))
            }
        };
        (caller, server.client_of(certificate))
    });
    let under_test = Arc::new(ClientServer::new(clients.collect::<Vec<_>>()));
    let outcomes = run_all(under_test, scenarios.clone(), AT_ONCE).await;
    assert_eq!(outcomes.len(), scenarios.len(), "some scenarios did not end");

    let known = known_differences().unwrap();
    let mut problems: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut all_differences = Vec::new();
    for outcome in &outcomes {
        let name = outcome.recording.scenario.clone();
        let mut found = outcome.failures.clone();
        let differences = compare(&golden(&name).unwrap(), &outcome.recording);
        all_differences.extend(differences.clone());
        found.extend(unknown(differences, &known).iter().map(ToString::to_string));
        if !found.is_empty() {
            problems.insert(name, found);
        }
    }
    let differing: BTreeSet<&str> = problems.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> =
        NOT_YET.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    if std::env::var_os("SHOW_PARITY").is_some() {
        for (name, found) in &problems {
            println!("## {name}\n{}", found.join("\n"));
        }
    }
    let unexpected: Vec<String> = problems
        .iter()
        .filter(|(name, _)| !listed.contains(name.as_str()))
        .map(|(name, found)| format!("## {name}\n{}", found.join("\n")))
        .collect();
    assert!(unexpected.is_empty(), "{} scenarios differ:\n{}", unexpected.len(), unexpected.join("\n"));
    if std::env::var_os("SCENARIOS").is_none() {
        let agreeing: Vec<&&str> = listed.difference(&differing).collect();
        assert!(agreeing.is_empty(), "these agree now; take them off the list: {agreeing:?}");
        let stale = stale(&known, &all_differences);
        assert!(stale.is_empty(), "known-differences.yaml lists what does not differ: {stale:#?}");
    }
}
