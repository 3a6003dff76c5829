//! `cargo xtask test`: everything, in the right order, with a summary that hides nothing.
//!
//! Each check counts as one test; the tests that cargo runs count one by one. The last line is the plain count.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::{control_plane, redis, workspace};

/// Where tests that skip themselves say so (`skep_conformance::skip`).
const SKIPPED_LOG_VARIABLE: &str = "SKEP_SKIPPED_LOG";

#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: Vec<String>,
}

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

fn control_plane_binaries() -> anyhow::Result<(Tally, Option<std::path::PathBuf>)> {
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

fn tests(binaries: Option<&std::path::Path>) -> anyhow::Result<Tally> {
    let log = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(workspace::cargo());
    command
        .args(["test", "--locked", "--workspace", "--no-fail-fast"])
        .current_dir(workspace::root())
        .env(SKIPPED_LOG_VARIABLE, log.path())
        .stdout(Stdio::piped());
    if let Some(folder) = binaries {
        command.env(control_plane::BINARIES_VARIABLE, folder);
    }
    let mut child = command.spawn()?;
    let mut tally = Tally::default();
    let mut crashes = Crashes::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            // Binaries without tests would only hide those with some.
            crashes.see(&line);
            if line.starts_with("test result:") {
                tally.count(&line);
            }
            if !line.is_empty()
                && !line.ends_with("running 0 tests")
                && !line.contains(" 0 passed; 0 failed; 0 ignored")
            {
                println!("{line}");
            }
        }
    }
    tally.failed += crashes.total();
    // A crate that does not compile prints no result line.
    if !child.wait()?.success() && tally.failed == 0 {
        tally.failed = 1;
    }
    tally.move_to_skipped(&fs::read_to_string(log.path())?);
    Ok(tally)
}

/// Test programs that began and did not get to a result.
#[derive(Debug, Default)]
struct Crashes {
    running: bool,
    count: usize,
}

impl Crashes {
    fn see(&mut self, line: &str) {
        let begins = line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test"));
        if begins {
            self.count += usize::from(self.running);
        }
        self.running = begins || self.running && !line.starts_with("test result:");
    }

    fn total(&self) -> usize {
        self.count + usize::from(self.running)
    }
}

impl Tally {
    /// Tests that skipped themselves, a line each. The harness counted them as passed.
    fn move_to_skipped(&mut self, log: &str) {
        let skipped: Vec<String> = log.lines().map(str::to_owned).collect();
        self.passed = self.passed.saturating_sub(skipped.len());
        self.skipped.extend(skipped);
    }

    /// Adds the numbers of a line such as `test result: ok. 5 passed; 0 failed; 1 ignored; …`.
    fn count(&mut self, line: &str) {
        let number_before = |word: &str| -> usize {
            line.split([';', '.'])
                .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
                .unwrap_or_default()
        };
        self.passed += number_before("passed");
        self.failed += number_before("failed");
        self.skipped.extend((0..number_before("ignored")).map(|_| "marked as ignored in the source".to_owned()));
    }
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
    let passed: usize = steps.iter().map(|step| step.outcome.passed).sum();
    let failed: usize = steps.iter().map(|step| step.outcome.failed).sum();
    println!("\n{passed} passed, {failed} failed, {} skipped", skipped.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_that_ends_without_a_result_has_crashed() {
        let mut crashes = Crashes::default();
        for line in
            ["running 2 tests", "test a ... ok", "running 1 test", "test result: ok. 1 passed", "running 0 tests"]
        {
            crashes.see(line);
        }
        assert_eq!(crashes.total(), 2);
        crashes.see("test result: ok. 0 passed");
        assert_eq!(crashes.total(), 1);
    }

    #[test]
    fn result_lines_are_added_up() {
        let mut tally = Tally::default();
        tally.count("test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s");
        tally.count(
            "test result: FAILED. 12 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.10s",
        );
        assert_eq!((tally.passed, tally.failed, tally.skipped.len()), (17, 2, 1));
        tally.move_to_skipped("one: no control plane\ntwo: no control plane\n");
        assert_eq!((tally.passed, tally.failed, tally.skipped.len()), (15, 2, 3));
    }
}
