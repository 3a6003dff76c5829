//! The operator on our API server and on a real one: the same tests on both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod cluster;
mod configs;
mod remote_proxies;
mod servers;
mod wire;

use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

use crate::cluster::{Fixture, Kind};

/// Longer than any of this takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

fn main() -> ExitCode {
    let trials = [Kind::Ours, Kind::Real]
        .into_iter()
        .flat_map(|kind| [configs::trials(kind), servers::trials(kind), remote_proxies::trials(kind)])
        .flatten()
        .collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    runtime().block_on(cluster::end());
    conclusion.exit_code()
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
                tokio::time::timeout(PATIENCE, test(fixture)).await.unwrap();
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
