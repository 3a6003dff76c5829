//! Server-side apply and managed fields: random sequences of writes by several managers must get the same answers from
//! our server as from a real one: object, managed fields with their times, warnings and errors.
//!
//! `SKEP_APPLY_SEQUENCES` runs more of them, `SKEP_APPLY_SEED` others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod apply {
    mod built_in_kinds;
    mod dice;
    pub(crate) mod pair;
    pub(crate) mod rounds;
    pub(crate) mod sequence;
}

use apply::pair::Pair;
use apply::rounds::Rounds;
use apply::sequence::{COLLECTION, Sequence, Tally};
use serde_json::Value;

const ROUNDS: usize = 12;
const DEFAULT_SEQUENCES: u64 = 60;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequences_of_writes_get_the_answers_of_the_real_server() {
    let Some(pair) = Pair::start_or_skip("sequences_of_writes_get_the_answers_of_the_real_server").await else {
        return;
    };
    let definition: Value = serde_json::from_str(include_str!("apply/shapes.json")).unwrap();
    pair.install(&definition, COLLECTION).await;

    let first = number_from("SKEP_APPLY_SEED").unwrap_or(1);
    let count = number_from("SKEP_APPLY_SEQUENCES").unwrap_or(DEFAULT_SEQUENCES);
    let mut sequences: Vec<Sequence> = (first..first + count).map(Sequence::new).collect();
    let (mut rounds, mut tally) = (Rounds::default(), Tally::default());
    for _ in 0..ROUNDS {
        rounds.begin().await;
        for (number, sequence) in sequences.iter_mut().enumerate() {
            // Half of them write twice, mostly within a second.
            for _ in 0..=number % 2 {
                sequence.step(&pair, &rounds, &mut tally).await;
            }
        }
    }
    let Tally { succeeded, unchanged, rehearsed, conflicts, invalid } = tally;
    println!(
        "figure: {count} sequences: {succeeded} writes of which {unchanged} changed nothing, {rehearsed} rehearsals, \
         {conflicts} conflicts, {invalid} invalid objects"
    );
    // The sequences are worth something only if they reach all of these.
    assert!(succeeded > conflicts && unchanged.min(rehearsed).min(conflicts).min(invalid) > 0);
}
