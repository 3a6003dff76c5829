//! `cargo xtask test`: everything, in the right order, with a summary that hides nothing.
//!
//! Each check counts as one test; the tests that cargo runs count one by one. The last line is the plain count.

mod again;
mod programs;
mod tally;

use std::cmp::Reverse;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::{control_plane, redis, workspace};
use tally::Tally;

/// Where tests that skip themselves say so (`skep_conformance::skip`).
const SKIPPED_LOG_VARIABLE: &str = "SKEP_SKIPPED_LOG";
/// How many programs are told to be slow.
const SLOWEST: usize = 12;

/// What became of one step.
struct Step {
    name: &'static str,
    outcome: Tally,
    took: Duration,
}

pub(crate) fn run() -> ExitCode {
    let mut steps = Vec::new();
    let mut record = |name: &'static str, step: &mut dyn FnMut() -> anyhow::Result<Tally>| {
        eprintln!("\n==> {name}");
        let started = Instant::now();
        let outcome = step().unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            Tally { failed: 1, ..Tally::default() }
        });
        steps.push(Step { name, outcome, took: started.elapsed() });
    };

    record("format", &mut || check(&["fmt", "--all", "--check"]));
    record("lints", &mut || check(&["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]));
    record("dependencies", &mut dependencies);
    let mut binaries = None;
    record("control plane", &mut || {
        let (tally, folder) = control_plane_binaries()?;
        binaries = folder;
        Ok(tally)
    });
    record("redis", &mut redis_server);
    record("tests", &mut || tests(binaries.as_deref()));

    summary(&steps)
}

/// A cargo command that passes or fails as a whole.
fn check(arguments: &[&str]) -> anyhow::Result<Tally> {
    let status = Command::new(workspace::cargo()).args(arguments).current_dir(workspace::root()).status()?;
    Ok(if status.success() { Tally { passed: 1, ..Tally::default() } } else { Tally { failed: 1, ..Tally::default() } })
}

fn dependencies() -> anyhow::Result<Tally> {
    let installed = Command::new(workspace::cargo()).args(["deny", "--version"]).output()?.status.success();
    if !installed {
        return Ok(skipped("cargo deny is not installed (cargo install cargo-deny)"));
    }
    let mut tally = check(&["deny", "--locked", "check", "bans", "licenses", "sources"])?;
    let fetched = Command::new(workspace::cargo())
        .args(["deny", "fetch", "db"])
        .current_dir(workspace::root())
        .output()?
        .status
        .success();
    if fetched {
        let advisories = check(&["deny", "--locked", "check", "--disable-fetch", "advisories"])?;
        tally.passed += advisories.passed;
        tally.failed += advisories.failed;
    } else {
        tally.skipped.extend(skipped("the advisory database cannot be fetched from here").skipped);
    }
    Ok(tally)
}

fn control_plane_binaries() -> anyhow::Result<(Tally, Option<PathBuf>)> {
    if let Some(reason) = control_plane::unavailable() {
        anyhow::ensure!(!in_ci(), "CI needs the control plane: {reason}");
        return Ok((skipped(&format!("control plane: {reason}")), None));
    }
    let folder = control_plane::ensure()?;
    eprintln!("{}", folder.display());
    Ok((Tally { passed: 1, ..Tally::default() }, Some(folder)))
}

fn redis_server() -> anyhow::Result<Tally> {
    match redis::ensure() {
        Ok(()) => Ok(Tally { passed: 1, ..Tally::default() }),
        Err(reason) => {
            anyhow::ensure!(!in_ci(), "CI needs Redis: {reason}");
            Ok(skipped(&reason))
        }
    }
}

/// Whether this is a CI run, by the variable that CI systems set.
fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false")
}

fn skipped(reason: &str) -> Tally {
    eprintln!("*** SKIPPED: {reason} ***");
    Tally { skipped: vec![reason.to_owned()], ..Tally::default() }
}

/// Runs all test programs. The slowest are told, for those who want to make the run shorter.
fn tests(binaries: Option<&Path>) -> anyhow::Result<Tally> {
    // Some tests run as another user, who must be able to write to the log, too.
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("skipped");
    fs::write(&log, "")?;
    fs::set_permissions(&log, Permissions::from_mode(0o666))?;
    fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
    let programs = programs::build(|command| {
        command.env(SKIPPED_LOG_VARIABLE, &log);
        if let Some(folder) = binaries {
            command.env(control_plane::BINARIES_VARIABLE, folder);
        }
    })?;
    let mut outcomes = programs::run(programs)?;
    again::run(&mut outcomes)?;
    outcomes.sort_by_key(|outcome| Reverse(outcome.took));
    println!("\nthe slowest programs:");
    for outcome in outcomes.iter().take(SLOWEST) {
        println!("{:>8.1} s  {}", outcome.took.as_secs_f64(), outcome.program.name);
    }
    let mut tally = Tally::default();
    for outcome in outcomes {
        tally.add(outcome.tally);
    }
    tally.move_to_skipped(&fs::read_to_string(&log)?);
    Ok(tally)
}

fn summary(steps: &[Step]) -> ExitCode {
    println!("\n{:<16} {:>7} {:>7} {:>8} {:>8}", "step", "passed", "failed", "skipped", "time");
    for Step { name, outcome, took } in steps {
        let seconds = format!("{:.1} s", took.as_secs_f64());
        println!("{name:<16} {:>7} {:>7} {:>8} {seconds:>8}", outcome.passed, outcome.failed, outcome.skipped.len());
    }
    let skipped: Vec<&String> = steps.iter().flat_map(|step| &step.outcome.skipped).collect();
    if !skipped.is_empty() {
        println!("\nskipped:");
        for reason in &skipped {
            println!("  {reason}");
        }
    }
    let unsteady: Vec<&String> = steps.iter().flat_map(|step| &step.outcome.unsteady).collect();
    if !unsteady.is_empty() {
        println!("\nfailed, and passed when run again alone (each is a bug in the test or in Skep):");
        for test in &unsteady {
            println!("  {test}");
        }
    }
    let passed: usize = steps.iter().map(|step| step.outcome.passed).sum();
    let failed: usize = steps.iter().map(|step| step.outcome.failed).sum();
    println!("\n{passed} passed, {failed} failed, {} skipped", skipped.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
