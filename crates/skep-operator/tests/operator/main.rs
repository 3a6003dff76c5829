//! The operator on our API server and on a real one: the same tests on both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bad_manifests;
mod children;
mod cluster;
mod conditions;
mod configs;
mod deploy;
mod election;
mod faults;
mod migration;
mod network;
mod openshift;
mod ownership;
mod readiness;
mod references;
mod remote_proxies;
mod rest;
mod rights;
mod runner;
mod servers;
mod takeover;
mod wire;

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

use crate::cluster::{Fixture, Kind};

/// The tests of each part, those that take longest first.
const MODULES: [fn(Kind) -> Vec<Trial>; 17] = [
    bad_manifests::trials,
    election::trials,
    rest::trials,
    faults::trials,
    migration::trials,
    readiness::trials,
    conditions::trials,
    configs::trials,
    servers::trials,
    children::trials,
    ownership::trials,
    takeover::trials,
    references::trials,
    network::trials,
    remote_proxies::trials,
    openshift::trials,
    runner::trials,
];
/// Most of them wait most of the time.
const AT_ONCE: usize = 8;
/// Longer than any of this takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);
/// The same for the long forms of tests.
const SOAK_PATIENCE: Duration = Duration::from_mins(30);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let both = |module: fn(Kind) -> Vec<Trial>| [Kind::Ours, Kind::Real].into_iter().flat_map(module);
    let conclusion = libtest_mimic::run(&arguments, MODULES.into_iter().flat_map(both).collect());
    // These look at what the others have done, and disturb them.
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty();
    let last = libtest_mimic::run(&Arguments { test_threads: Some(1), ..arguments }, rights::trials(is_whole));
    runtime().block_on(cluster::end());
    if conclusion.has_failed() || last.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Whether tests run in their long forms.
fn is_soak() -> bool {
    std::env::var_os("SKEP_SOAK").is_some()
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// A test that is given a cluster of one kind, and a namespace of its own in it.
fn trial<F: Future<Output = ()> + 'static>(
    kind: Kind,
    name: &str,
    test: impl FnOnce(Fixture) -> F + Send + 'static,
) -> Trial {
    let namespace = name.rsplit("::").next().unwrap_or_default().replace('_', "-");
    Trial::test(format!("{kind:?}::{name}"), move || {
        let limited = async {
            if let Some(fixture) = cluster::fixture(kind, &namespace).await {
                let patience = if is_soak() { SOAK_PATIENCE } else { PATIENCE };
                tokio::time::timeout(patience, test(fixture)).await.unwrap();
                rights::assert_none_was_missing(&namespace);
            }
        };
        runtime().block_on(limited);
        Ok(())
    })
}

#[macro_export]
macro_rules! trials {
    ($($test:ident),* $(,)?) => {
        pub fn trials(kind: $crate::cluster::Kind) -> Vec<libtest_mimic::Trial> {
            vec![$($crate::trial(kind, concat!(module_path!(), "::", stringify!($test)), $test)),*]
        }
    };
}
