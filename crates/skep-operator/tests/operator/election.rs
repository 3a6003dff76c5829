//! Several replicas, of which one works: another takes over when it is killed, cut off or stopped, and never two write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_api::names::operator;
use skep_operator::election::Candidate;
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;
use tokio::task::JoinHandle;

use crate::cluster::Fixture;
use crate::servers::settled;
use crate::trials;
use crate::wire::{Faults, Record};

trials![
    another_takes_over_from_a_leader_that_is_killed,
    a_leader_that_cannot_renew_stops_before_another_begins,
    a_leader_that_stops_gives_the_lease_back,
    of_two_that_stand_at_once_one_leads,
];

/// A process with an operator, as far as that matters here.
struct Replica {
    record: Record,
    process: JoinHandle<()>,
}

impl Replica {
    fn start(fixture: &Fixture, identity: &'static str, faults: Faults) -> Self {
        let (client, record) = fixture.client_of_operator(faults);
        Self { record, process: tokio::spawn(work(client, fixture.namespace.clone(), identity)) }
    }
}

/// When somebody wrote, the lease aside.
fn writes(record: &Record) -> Vec<Instant> {
    let writes = record.writes().into_iter().filter(|sent| sent.asked.resource != "leases");
    writes.map(|sent| sent.at).collect()
}

/// Killed: nothing is given back.
impl Drop for Replica {
    fn drop(&mut self) {
        self.process.abort();
    }
}

async fn work(client: Client, namespace: String, identity: &'static str) {
    let mut candidate = Candidate::stand(client.clone(), &namespace, identity).await.unwrap();
    let settings = Settings { namespaces: vec![namespace], ..Settings::default() };
    loop {
        candidate.elected().await;
        let operator = Operator::start(client.clone(), &settings, Arc::default());
        candidate.deposed().await;
        drop(operator);
    }
}

async fn holder(fixture: &Fixture) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let lease = leases.get_opt(operator::LEADER_ELECTION_ID).await.unwrap();
    lease.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty())
}

async fn until_held_by(fixture: &Fixture, identity: &str) {
    let held = async || (holder(fixture).await.as_deref() == Some(identity)).then_some(());
    fixture.eventually(&format!("a lease of {identity}"), held).await;
}

/// Two replicas, the first of which leads and has written something.
async fn two(fixture: &Fixture, faults: Faults) -> (Replica, Replica) {
    let first = Replica::start(fixture, "first", faults);
    until_held_by(fixture, "first").await;
    let second = Replica::start(fixture, "second", Faults::none());
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(fixture, "s").await;
    assert!(!writes(&first.record).is_empty() && writes(&second.record).is_empty());
    (first, second)
}

fn assert_one_after_the_other(first: &Record, second: &Record) {
    assert!(writes(first).iter().max() < writes(second).iter().min(), "both have written at a time");
}

async fn another_takes_over_from_a_leader_that_is_killed(fixture: Fixture) {
    let (first, second) = two(&fixture, Faults::none()).await;
    let written = first.record.clone();
    drop(first);
    fixture.create::<MCPServer>("t", json!({"image": "i"})).await;
    settled(&fixture, "t").await;
    until_held_by(&fixture, "second").await;
    assert_one_after_the_other(&written, &second.record);
}

async fn a_leader_that_cannot_renew_stops_before_another_begins(fixture: Fixture) {
    let faults = Faults::none();
    let (first, second) = two(&fixture, faults.clone()).await;
    // Everything else still works for it, so that only the lease can stop it.
    faults.cut_off("/leases/");
    let before = writes(&first.record).len();
    let mut number = 0;
    // There is always something to write.
    let busy = async {
        loop {
            fixture.merge::<MCPServer>("s", json!({"spec": {"image": format!("i-{number}")}})).await;
            number += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let both = fixture.eventually("writes of the other", async || (writes(&second.record).len() > 10).then_some(()));
    tokio::select! {
        () = busy => {}
        () = both => {}
    }
    assert!(writes(&first.record).len() > before, "it has worked on until its time was up");
    assert_one_after_the_other(&first.record, &second.record);
    settled(&fixture, "s").await;
}

async fn a_leader_that_stops_gives_the_lease_back(fixture: Fixture) {
    let (client, _record) = fixture.client_of_operator(Faults::none());
    let mut first = Candidate::stand(client.clone(), &fixture.namespace, "first").await.unwrap();
    first.elected().await;
    assert_eq!(holder(&fixture).await.as_deref(), Some("first"));
    first.resign().await;
    assert_eq!(holder(&fixture).await, None);
    let mut second = Candidate::stand(client, &fixture.namespace, "second").await.unwrap();
    assert!(second.elected().now_or_never().is_some(), "nobody has to wait for a lease that was given back");
    assert_eq!(holder(&fixture).await.as_deref(), Some("second"));
}

async fn of_two_that_stand_at_once_one_leads(fixture: Fixture) {
    let (client, _record) = fixture.client_of_operator(Faults::none());
    let stand = |identity| Candidate::stand(client.clone(), &fixture.namespace, identity);
    let (one, other) = tokio::join!(stand("one"), stand("other"));
    let (mut one, mut other) = (one.unwrap(), other.unwrap());
    let leaders = [("one", one.elected().now_or_never()), ("other", other.elected().now_or_never())];
    let leaders: Vec<&str> = leaders.into_iter().filter_map(|(name, leads)| leads.map(|()| name)).collect();
    assert_eq!(leaders, [holder(&fixture).await.unwrap()]);
}
