//! A node at our API server and at a real one: kubectl looks into its pods (logs, exec, attach and port-forward), and
//! services lead to them.
//!
//! Everything, the API servers too, runs in namespaces that the test program makes for itself.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod again;
mod attach;
mod cluster;
mod exec;
mod health;
mod images;
mod life;
mod logs;
mod look;
mod names;
mod node;
mod packets;
mod pods;
mod ports;
mod race;
mod services;
mod volumes;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use skep_node::isolation;

use crate::cluster::{Cluster, Kind};

/// Longer than any of this takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

fn main() -> ExitCode {
    skep_node::become_helper();
    match std::env::args().nth(1).as_deref() {
        Some(ports::SERVER) => return ports::serve(),
        Some(services::SERVER_OF_NAMES) => return services::serve_name(),
        Some(packets::SERVER) => return packets::serve(),
        Some(packets::CLIENT) => return packets::ask(),
        _ => {}
    }
    if isolation::is_inside() {
        let conclusion = libtest_mimic::run(&Arguments::from_args(), trials());
        runtime().block_on(cluster::end());
        return conclusion.exit_code();
    }
    if let Err(refusal) = isolation::probe() {
        let reason = format!("{refusal} ({})", refusal.remedy.replace('\n', "; "));
        for trial in trials() {
            skep_conformance::skip::skip(trial.name(), &reason);
        }
        return ExitCode::SUCCESS;
    }
    // What is installed on this machine must not decide about the tests: installers are stand-ins.
    if images::has_stand_ins() { run_inside() } else { images::run_with_stand_ins() }
}

fn run_inside() -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    let exit = runtime().block_on(isolation::run_inside(arguments)).unwrap();
    ExitCode::from(u8::try_from(exit.code).unwrap_or(1))
}

fn trials() -> Vec<Trial> {
    let both = [Kind::Ours, Kind::Real];
    let of_kind = |kind| {
        let modules = [
            logs::trials,
            exec::trials,
            attach::trials,
            ports::trials,
            services::trials,
            packets::trials,
            pods::trials,
            life::trials,
            again::trials,
            health::trials,
            images::trials,
            names::trials,
            node::trials,
            volumes::trials,
        ];
        modules.into_iter().flat_map(move |trials| trials(kind))
    };
    let mut trials: Vec<Trial> = both.into_iter().flat_map(of_kind).collect();
    trials.extend(access::trials());
    trials.extend(life::real_trials());
    trials.extend(race::trials(Kind::Real));
    trials
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// A test that is given a cluster of one kind.
fn trial<F: Future<Output = ()> + Send + 'static>(kind: Kind, name: &str, test: fn(Arc<Cluster>) -> F) -> Trial {
    Trial::test(format!("{kind:?}::{name}"), move || {
        let limited = async {
            if let Some(cluster) = cluster::of_kind(kind).await {
                let patience = if std::env::var_os("SKEP_SOAK").is_some() { 30 * PATIENCE } else { PATIENCE };
                tokio::time::timeout(patience, test(cluster)).await.unwrap();
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
