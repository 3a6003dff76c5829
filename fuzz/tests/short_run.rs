//! Some seconds of every target. `SKEP_FUZZ_SECONDS` makes it longer, `SKEP_FUZZ_SEED` different.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use skep_fuzz::{TARGETS, driver, find};

const DEFAULT_SECONDS: u64 = 2;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn run(name: &str) {
    let time = Duration::from_secs(number_from("SKEP_FUZZ_SECONDS").unwrap_or(DEFAULT_SECONDS));
    let seed = number_from("SKEP_FUZZ_SEED").unwrap_or(1);
    let target = find(name).unwrap();
    match driver::run(target, time, seed) {
        Ok(report) => {
            println!(
                "figure: {name} survived {} inputs, the slowest in {} ms",
                report.runs,
                report.slowest.as_millis()
            );
            let corpus = driver::corpus(target).unwrap().len() as u64;
            assert!(report.runs > corpus, "not all of the corpus of {corpus} was run: {report:?}");
        }
        Err(failure) => panic!("{name}, seed {seed}: {failure}"),
    }
}

macro_rules! targets {
    ($($name:ident),*) => {
        $(#[test] fn $name() { run(stringify!($name)); })*

        #[test]
        fn every_target_is_run() {
            assert_eq!([$(stringify!($name)),*], TARGETS.map(|target| target.name));
        }
    };
}

targets![
    apply,
    json_patch,
    json_path,
    managed_fields,
    mcp_catalog,
    mcp_edit,
    mcp_message,
    mcp_stream,
    mcp_translate,
    merge_patch,
    protobuf,
    rules,
    schema,
    selectors,
    strategic_patch,
    table,
    yaml
];
