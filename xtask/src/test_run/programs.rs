//! The test programs of the workspace: cargo builds them, and several run at a time.
//!
//! Cargo would run one after the other. Many of ours mostly wait, for processes and for clocks, so that this would take
//! twice as long. What a program prints is kept together and shown when it ends.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::tally::{Tally, failures};
use crate::workspace;

/// As many keep two cores busy, and not so busy that tests wait for each other.
const AT_ONCE: usize = 3;
/// Those that take longest, which start first: otherwise everything else is over while one of them still runs.
const LONGEST: [&str; 6] = [
    "skep-operator tests/operator/main.rs",
    "skep-node tests/kubelet/main.rs",
    "skep tests/demo/main.rs",
    "skep tests/up/main.rs",
    "skep tests/local_commands/main.rs",
    "skep-kube tests/protobuf.rs",
];

/// A program that runs tests.
#[derive(Debug)]
pub(super) struct Program {
    /// The package, and the source in it.
    pub(super) name: String,
    command: Command,
}

impl Program {
    #[cfg(test)]
    pub(super) fn script(path: &Path) -> Self {
        let mut command = Command::new("/bin/sh");
        command.arg(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, command }
    }

    /// Runs one of its tests alone, and tells whether it passes.
    pub(super) fn passes(&self, test: &str) -> anyhow::Result<bool> {
        let mut command = Command::new(self.command.get_program());
        command.args(self.command.get_args()).args(["--exact", test]);
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        let (output, succeeded) = run_one(&mut command).with_context(|| format!("cannot run {}", self.name))?;
        println!("\n--> {}: {test} again, alone\n{output}", self.name);
        // A name that nothing is called by would pass as well.
        let tally = Tally::of_program(&output, succeeded);
        Ok(tally.failed == 0 && tally.passed == 1)
    }
}

/// What became of a program.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) program: Program,
    pub(super) tally: Tally,
    /// The tests that failed, as far as the program got to name them.
    pub(super) failures: Vec<String>,
    pub(super) took: Duration,
}

/// All of them, built; the longest first. `prepare` gives each what it needs in its environment.
pub(super) fn build(prepare: impl Fn(&mut Command)) -> anyhow::Result<Vec<Program>> {
    let mut cargo = Command::new(workspace::cargo())
        .args(["test", "--locked", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"])
        .current_dir(workspace::root())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut programs = Vec::new();
    if let Some(stdout) = cargo.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            let message = serde_json::from_str(&line).with_context(|| format!("cargo said {line:?}"))?;
            programs.extend(program_of(&message));
        }
    }
    ensure!(cargo.wait()?.success(), "the tests do not compile");
    let mut examples = Command::new(workspace::cargo());
    examples.args(["test", "--locked", "--workspace", "--doc", "--no-fail-fast"]).current_dir(workspace::root());
    programs.push(Program { name: "examples in the documentation".to_owned(), command: examples });
    for program in &mut programs {
        prepare(&mut program.command);
    }
    programs.sort_by_key(|Program { name, .. }| LONGEST.iter().position(|long| long == name).unwrap_or(LONGEST.len()));
    Ok(programs)
}

/// The test program that a message of cargo is about.
fn program_of(message: &Value) -> Option<Program> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let source = Path::new(message["target"]["src_path"].as_str()?);
    let package = package_of(message["package_id"].as_str()?);
    let mut command = Command::new(message["executable"].as_str()?);
    // As cargo does.
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    let source = source.strip_prefix(folder).unwrap_or(source);
    Some(Program { name: format!("{package} {}", source.display()), command })
}

/// The name in an identity such as `path+file:///folder/name#0.1.0` or `path+file:///folder#name@0.1.0`.
fn package_of(id: &str) -> &str {
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    version.split_once('@').map_or_else(|| place.rsplit('/').next().unwrap_or(place), |(name, _)| name)
}

/// Runs all programs, and shows what each has printed when it ends.
pub(super) fn run(programs: Vec<Program>) -> anyhow::Result<Vec<Outcome>> {
    let waiting = Mutex::new(programs.into_iter());
    let outcomes = Mutex::new(Vec::new());
    let next = || waiting.lock().ok()?.next();
    let work = || -> anyhow::Result<()> {
        while let Some(mut program) = next() {
            let begun = Instant::now();
            let (output, succeeded) =
                run_one(&mut program.command).with_context(|| format!("cannot run {}", program.name))?;
            let tally = Tally::of_program(&output, succeeded);
            let outcome = Outcome { tally, failures: failures(&output), took: begun.elapsed(), program };
            if let Ok(mut outcomes) = outcomes.lock() {
                show(&outcome, &output);
                outcomes.push(outcome);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| anyhow::bail!("a worker panicked")))
    })?;
    Ok(outcomes.into_inner().unwrap_or_default())
}

/// What a program prints, and whether it succeeds. A file has the output, as processes that a test has left behind would
/// hold a pipe open.
fn run_one(command: &mut Command) -> io::Result<(String, bool)> {
    let mut file = tempfile::tempfile()?;
    let status = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?).status()?;
    let mut output = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut output)?;
    Ok((String::from_utf8_lossy(&output).into_owned(), status.success()))
}

/// Prints the output of a program, unless it has no tests: such would only hide the others.
fn show(outcome: &Outcome, output: &str) {
    let Outcome { program: Program { name, .. }, tally, took, .. } = outcome;
    if *tally == Tally::default() {
        return;
    }
    println!("\n--> {name}: {} passed, {} failed, {:.1} s", tally.passed, tally.failed, took.as_secs_f64());
    let is_empty = |line: &&str| {
        line.is_empty() || line.ends_with("running 0 tests") || line.contains(" 0 passed; 0 failed; 0 ignored")
    };
    for line in output.lines().filter(|line| !is_empty(line)) {
        println!("{line}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shell(name: &str, script: &str) -> Program {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Program { name: name.to_owned(), command }
    }

    #[test]
    fn test_programs_are_found_among_what_cargo_builds() {
        let artifact = |test: bool, executable: Value| {
            json!({"reason": "compiler-artifact", "package_id": "path+file:///w/crates/a-b#0.1.0",
                "manifest_path": "/w/crates/a-b/Cargo.toml", "profile": {"test": test}, "executable": executable,
                "target": {"src_path": "/w/crates/a-b/tests/up/main.rs"}})
        };
        let found = program_of(&artifact(true, json!("/t/up-0"))).unwrap();
        assert_eq!((found.name.as_str(), found.command.get_program()), ("a-b tests/up/main.rs", "/t/up-0".as_ref()));
        assert_eq!(found.command.get_current_dir(), Some(Path::new("/w/crates/a-b")));
        assert!(program_of(&artifact(false, json!("/t/a"))).is_none(), "a program that tests use");
        assert!(program_of(&artifact(true, Value::Null)).is_none());
        assert!(program_of(&json!({"reason": "build-finished"})).is_none());
        assert_eq!(package_of("path+file:///w/conformance#skep-conformance@0.1.0"), "skep-conformance");
    }

    #[test]
    fn the_longest_are_programs_of_the_workspace() {
        for name in LONGEST {
            let (package, source) = name.split_once(' ').unwrap();
            let path = workspace::root().join("crates").join(package).join(source);
            assert!(path.exists(), "{}", path.display());
        }
    }

    /// Each of the first waits for the others; one that fails hides none.
    #[test]
    fn several_run_at_a_time_and_all_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        let meet = format!(
            "touch {place}/$$; for _ in $(seq 6000); do [ $(ls {place} | wc -l) -ge {AT_ONCE} ] && break; sleep 0.01; done
             [ $(ls {place} | wc -l) -ge {AT_ONCE} ] || exit 1
             echo 'test result: ok. 2 passed; 0 failed; 0 ignored'"
        );
        let mut programs: Vec<Program> = (0..AT_ONCE).map(|number| shell(&number.to_string(), &meet)).collect();
        programs.push(shell("failing", "echo running 3 tests; echo lost >&2; exit 9"));
        programs.push(shell("last", "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; sleep 5 &"));
        let outcomes = run(programs).unwrap();
        let sum = |count: fn(&Tally) -> usize| outcomes.iter().map(|outcome| count(&outcome.tally)).sum::<usize>();
        assert_eq!((sum(|tally| tally.passed), sum(|tally| tally.failed)), (2 * AT_ONCE + 1, 1));
        let (output, succeeded) = run_one(&mut shell("", "echo one; echo two >&2; exit 1").command).unwrap();
        assert_eq!((output.as_str(), succeeded), ("one\ntwo\n", false));
    }
}
