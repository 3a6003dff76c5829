//! Random changes while every request of the operator may fail, wait or meet a conflict, and while the operator is killed
//! and started again at random: once the faults end, everything is as an operator that saw none of it would have made
//! it, and nothing that others wrote is lost.
//!
//! `SKEP_FAULT_SEQUENCES` is the number of sequences on our server, `SKEP_FAULT_SEED` where they begin. `--test
//! operator_faults` of the binary does the same with processes.

use std::time::Duration;

use libtest_mimic::Trial;
use skep_conformance::changes::{Life, Random, Twin};
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, Kind};
use crate::wire::Faults;

/// On our server and on a real one, where everything takes longer.
const SEQUENCES: (u64, u64) = (10, 2);
const CHANGES: usize = 30;

pub fn trials(kind: Kind) -> Vec<Trial> {
    let variable = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let first = variable("SKEP_FAULT_SEED").unwrap_or(1);
    let sequences = match kind {
        Kind::Ours => variable("SKEP_FAULT_SEQUENCES").unwrap_or(SEQUENCES.0),
        Kind::Real => SEQUENCES.1,
    };
    let trial =
        |seed| crate::trial(kind, &format!("faults::seed_{seed}"), move |fixture| faults_leave_no_trace(fixture, seed));
    (first..first + sequences).map(trial).collect()
}

async fn faults_leave_no_trace(fixture: Fixture, seed: u64) {
    let mut random = Random(seed);
    let faults = Faults::seeded(seed);
    let start = || fixture.starting_operator(Settings::default(), faults.clone());
    let mut life = Life::begin(fixture.place(), seed).await.unwrap();
    let mut operator = Some(start());
    for _ in 0..CHANGES {
        match random.below(16) {
            0 => operator = None,
            1 => {
                drop(operator.take());
                operator = Some(start());
            }
            _ => life.go_on().await.unwrap(),
        }
        tokio::time::sleep(Duration::from_millis(u64::try_from(random.below(30)).unwrap())).await;
    }
    life.end().await.unwrap();
    let _operator = operator.unwrap_or_else(start);
    faults.end();

    let other = fixture.sibling(&format!("{}-twin", fixture.namespace)).await;
    let twin = Twin::of(&life, other.place()).await.unwrap();
    let _untroubled = other.operator().await;
    twin.complete().await.unwrap();
    life.compare(&twin).await.unwrap();
}
