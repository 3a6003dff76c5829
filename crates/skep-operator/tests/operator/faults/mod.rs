//! Random changes while every request of the operator may fail, wait or meet a conflict, and while the operator is killed
//! and started again at random: once the faults end, everything is as an operator that saw none of it would have made
//! it, and nothing that others wrote is lost.
//!
//! `SKEP_FAULT_SEQUENCES` is the number of sequences on our server, `SKEP_FAULT_SEED` where they begin.

mod changes;
mod marks;
mod outcome;
mod twin;

use std::collections::BTreeMap;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::Value;
use skep_operator::settings::Settings;

use self::changes::Changes;
pub use self::changes::{prepare, run_backend};
use self::marks::Mark;
use crate::cluster::{Fixture, Kind};
use crate::wire::{Faults, Random};

/// On our server and on a real one, where everything takes longer.
const SEQUENCES: (u64, u64) = (15, 3);
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
    changes::prepare(&fixture).await;
    let mut operator = Some(start());
    let mut marks: Vec<Mark> = Vec::new();
    let changes = Changes { fixture: &fixture };
    for _ in 0..CHANGES {
        match random.below(16) {
            0 => operator = None,
            1 => {
                drop(operator.take());
                operator = Some(start());
            }
            2..=3 => marks.extend(marks::mark_something(&fixture, &mut random).await),
            _ => changes.change_something(&mut random).await,
        }
        tokio::time::sleep(Duration::from_millis(u64::try_from(random.below(30)).unwrap())).await;
    }
    if random.below(2) == 0 {
        changes.heal().await;
    }
    let _operator = operator.unwrap_or_else(start);
    faults.end();

    marks::assert_kept(&fixture, &marks, seed).await;
    marks::let_go(&fixture).await;
    let twin = fixture.sibling(&format!("{}-twin", fixture.namespace)).await;
    let _untroubled = twin::of(&fixture, &twin).await;
    converge(&fixture, &twin, seed).await;
    marks::assert_kept(&fixture, &marks, seed).await;
}

async fn converge(fixture: &Fixture, twin: &Fixture, seed: u64) {
    let mut last: (BTreeMap<String, Value>, BTreeMap<String, Value>) = Default::default();
    for _ in 0..600 {
        last = (outcome::of(fixture).await, outcome::of(twin).await);
        if last.0 == last.1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("seed {seed}: not what an untroubled operator makes of it:\n{}", outcome::difference(&last.0, &last.1));
}
