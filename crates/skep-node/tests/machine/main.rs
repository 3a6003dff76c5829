//! Containers, their network and their end, on the machine that the test runs on.
//!
//! The test program puts itself into namespaces and runs the tests there; as root it does so again as an ordinary user.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod broker;
mod death;
mod devices;
mod files;
mod network;
mod plain;
mod process;
mod role;
mod support;
mod user;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use skep_node::isolation;

/// An ordinary user that every machine has.
const NOBODY: u32 = 65534;

fn main() -> ExitCode {
    skep_node::become_helper();
    if let Some(role) = role::of_this_process() {
        return role.play();
    }
    if isolation::is_inside() {
        let trials = isolated_trials().chain(plain::trials()).collect();
        return libtest_mimic::run(&Arguments::from_args(), trials).exit_code();
    }
    if let Err(refusal) = isolation::probe() {
        let reason = format!("{refusal} ({})", refusal.remedy.replace('\n', "; "));
        for trial in isolated_trials() {
            skep_conformance::skip::skip(trial.name(), &reason);
        }
        return libtest_mimic::run(&Arguments::from_args(), plain::trials()).exit_code();
    }
    let mine = run_inside();
    if mine == ExitCode::SUCCESS && rustix::process::geteuid().is_root() { run_as_nobody() } else { mine }
}

/// Those that need namespaces.
fn isolated_trials() -> impl Iterator<Item = Trial> {
    let files = [files::trials(), devices::trials(), process::trials(), user::trials()];
    files.into_iter().chain([network::trials(), broker::trials(), death::trials()]).flatten()
}

fn run_inside() -> ExitCode {
    let arguments = std::env::args_os().skip(1).collect();
    let exit = support::runtime().block_on(isolation::run_inside(arguments)).unwrap();
    ExitCode::from(u8::try_from(exit.code).unwrap_or(1))
}

/// All of it again as somebody who has no privileges, from a copy of the program that this user can reach.
fn run_as_nobody() -> ExitCode {
    println!("\nas an ordinary user:");
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("machine");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let status = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .status()
        .unwrap();
    ExitCode::from(u8::from(!status.success()))
}
