//! `cargo xtask soak`: the long forms of tests, too long for every run, and the benches. Each round is one run of cargo.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use clap::Args;

use crate::{control_plane, workspace};

/// Makes tests run their long forms.
const SOAK_VARIABLE: &str = "SKEP_SOAK";
/// How tests report what they measured; the rest of the line is for people.
const FIGURE: &str = "figure: ";
/// Sequences and seconds (for each target) in one round.
const APPLY_SEQUENCES: u64 = 300;
const FAULT_SEQUENCES: u64 = 500;
const FUZZ_SECONDS: u64 = 60;

#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// What to run, or `all`; without a name, what there is
    names: Vec<String>,
    /// How many rounds to run of each
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// How long to run each, in whole rounds
    #[arg(long, conflicts_with = "rounds")]
    minutes: Option<u64>,
}

/// A long form of a test.
#[derive(Debug)]
struct Tier {
    name: &'static str,
    what: &'static str,
    /// What to tell cargo.
    command: &'static str,
    /// How many rounds make sense by themselves.
    rounds: u32,
    /// What one round is told, given a number that no other round has.
    settings: fn(u64) -> Vec<(&'static str, u64)>,
}

const TIERS: [Tier; 19] = [
    Tier {
        name: "apply",
        what: "300 random sequences of server-side apply, compared with the real server",
        command: "test -p skep-kube --test apply_on_control_plane",
        rounds: 10,
        settings: |round| {
            vec![("SKEP_APPLY_SEQUENCES", APPLY_SEQUENCES), ("SKEP_APPLY_SEED", round.wrapping_mul(APPLY_SEQUENCES))]
        },
    },
    Tier {
        name: "kill",
        what: "kill -9 five times during a load of 10 000 objects",
        command: "test --release -p skep --test api_server_faults kill",
        rounds: 5,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "watchers",
        what: "200 watchers of 4 800 events over TLS",
        command: "test --release -p skep --test api_server_faults watchers",
        rounds: 5,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "growth",
        what: "20 000 objects that come and go leave neither memory nor disk behind",
        command: "test --release -p skep --test api_server_faults growth",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "controllers",
        what: "the expectations of the controllers, on ours and on those of Kubernetes",
        command: "test -p skep-kube --test controllers_on_control_plane",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "parity",
        what: "every scenario of conformance/kube on the real server",
        command: "test -p skep-conformance --test kube_on_control_plane",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "kubectl",
        what: "every script of conformance/kubectl on a real cluster",
        command: "test -p skep-kube --test kubectl the_golden_transcripts",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "runtime",
        what: "what kube-rs' runtime and an elector expect, on the real server",
        command: "test -p skep-kube --test kube_runtime on_a_real_server",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "fuzz",
        what: "a minute of every fuzz target",
        command: "test --release -p skep-fuzz --test short_run",
        rounds: 6,
        settings: |round| vec![("SKEP_FUZZ_SECONDS", FUZZ_SECONDS), ("SKEP_FUZZ_SEED", round)],
    },
    Tier {
        name: "generation-race",
        what: "200 rolling updates in which the old pod starts again, on skep up and on the real control plane",
        command: "test -p skep -p skep-node --test up --test node --test kubelet generation_race",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "crowd",
        what: "50 pods at once, twice, on skep up; nothing is left of them",
        command: "test -p skep --test up crowd",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "kill-up",
        what: "kill -9 of skep up at 50 random moments",
        command: "test -p skep --test up kills",
        rounds: 1,
        settings: |round| vec![("SKEP_KILL_SEED", round)],
    },
    Tier {
        name: "operator-rest",
        what: "ten minutes with 200 MCPServers of every option, on our server and on the real one; nothing is written",
        command: "test -p skep-operator --test operator rest::",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "operator-faults",
        what: "500 random sequences of changes while requests of the operator fail and it is killed",
        command: "test -p skep-operator --test operator Ours::faults",
        rounds: 1,
        settings: |round| {
            vec![("SKEP_FAULT_SEQUENCES", FAULT_SEQUENCES), ("SKEP_FAULT_SEED", round.wrapping_mul(FAULT_SEQUENCES))]
        },
    },
    Tier {
        name: "operator-kills",
        what: "kill -9 of skep operator at random moments of 500 random sequences of changes, and of 100 on the real server",
        command: "test -p skep --test operator_faults",
        rounds: 1,
        settings: |round| {
            vec![("SKEP_FAULT_SEQUENCES", FAULT_SEQUENCES), ("SKEP_FAULT_SEED", round.wrapping_mul(FAULT_SEQUENCES))]
        },
    },
    Tier {
        name: "up",
        what: "start of skep up to the first answer of a tool; fails when it takes too long",
        command: "run --release -p skep-bench -- up",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "bench-proxy",
        what: "the proxy beside a bare one; fails when a target is missed",
        command: "run --release -p skep-bench -- proxy",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "bench-middleware",
        what: "each layer of the chain beside a bare proxy; fails when a target is missed",
        command: "run --release -p skep-bench -- middleware",
        rounds: 1,
        settings: |_| Vec::new(),
    },
    Tier {
        name: "bench",
        what: "the API server beside the real one; fails when a target is missed",
        command: "run --release -p skep-bench -- kube",
        rounds: 1,
        settings: |_| Vec::new(),
    },
];

/// What became of a tier.
#[derive(Debug)]
struct Outcome {
    name: &'static str,
    rounds: u32,
    passed: bool,
    took: Duration,
    /// Those of the last round.
    figures: Vec<String>,
}

pub(crate) fn run(arguments: &SoakArgs) -> anyhow::Result<ExitCode> {
    let chosen = choose(&arguments.names)?;
    if chosen.is_empty() {
        print!("{}", overview());
        return Ok(ExitCode::SUCCESS);
    }
    let binaries = control_plane::ensure()?;
    // Other sequences every time; a test that fails says which one it was.
    let first = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let mut outcomes = Vec::new();
    for tier in chosen {
        outcomes.push(repeat(tier, arguments, |round| {
            let mut command = Command::new(workspace::cargo());
            command.args(tier.command.split(' ')).current_dir(workspace::root());
            if tier.command.starts_with("test ") {
                command.args(["--", "--nocapture"]);
            }
            command.env(SOAK_VARIABLE, "1").env(control_plane::BINARIES_VARIABLE, &binaries);
            for (variable, value) in (tier.settings)(first + u64::from(round)) {
                command.env(variable, value.to_string());
            }
            one_round(command)
        })?);
    }
    Ok(summary(&outcomes))
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Tier>> {
    if names.iter().any(|name| name == "all") {
        return Ok(TIERS.iter().collect());
    }
    let find = |name: &String| match TIERS.iter().find(|tier| tier.name == name) {
        Some(tier) => Ok(tier),
        None => bail!("there is no {name:?}\n{}", overview()),
    };
    names.iter().map(find).collect()
}

fn overview() -> String {
    let lines = TIERS.iter().map(|tier| format!("{:<16} {:>6}  {}\n", tier.name, tier.rounds, tier.what));
    format!("{:<16} {:>6}\n{}{:<16} {:>6}  all of them\n", "name", "rounds", lines.collect::<String>(), "all", "")
}

/// Runs rounds until there were enough, the time is up, or one fails.
fn repeat(
    tier: &Tier,
    arguments: &SoakArgs,
    mut one: impl FnMut(u32) -> anyhow::Result<(bool, Vec<String>)>,
) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let mut outcome = Outcome { name: tier.name, rounds: 0, passed: true, took: Duration::ZERO, figures: Vec::new() };
    let is_enough = |outcome: &Outcome| match arguments.minutes {
        Some(minutes) => outcome.rounds > 0 && begun.elapsed() >= Duration::from_secs(60 * minutes),
        None => outcome.rounds >= arguments.rounds.unwrap_or(tier.rounds),
    };
    while outcome.passed && !is_enough(&outcome) {
        outcome.rounds += 1;
        eprintln!("\n==> {}, round {}", tier.name, outcome.rounds);
        (outcome.passed, outcome.figures) = one(outcome.rounds)?;
    }
    outcome.took = begun.elapsed();
    Ok(outcome)
}

/// Whether it passed, and the figures that it told.
fn one_round(mut command: Command) -> anyhow::Result<(bool, Vec<String>)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut figures = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            // The test harness writes the name of the test on the same line.
            figures.extend(line.split_once(FIGURE).map(|(_, figure)| figure.to_owned()));
        }
    }
    Ok((child.wait()?.success(), figures))
}

fn summary(outcomes: &[Outcome]) -> ExitCode {
    println!("\n{:<16} {:>6} {:>8} {:>9}", "name", "rounds", "", "time");
    for Outcome { name, rounds, passed, took, figures } in outcomes {
        let seconds = format!("{:.0} s", took.as_secs_f64());
        println!("{name:<16} {rounds:>6} {:>8} {seconds:>9}", if *passed { "passed" } else { "FAILED" });
        for figure in figures {
            println!("  {figure}");
        }
    }
    if outcomes.iter().all(|outcome| outcome.passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(rounds: Option<u32>, minutes: Option<u64>) -> SoakArgs {
        SoakArgs { names: Vec::new(), rounds, minutes }
    }

    #[test]
    fn names_are_found_and_typos_are_told() {
        assert!(choose(&[]).unwrap().is_empty());
        assert_eq!(choose(&["all".into()]).unwrap().len(), TIERS.len());
        assert_eq!(choose(&["kill".into(), "fuzz".into()]).unwrap()[1].name, "fuzz");
        let error = choose(&["kil".into()]).unwrap_err().to_string();
        assert!(error.contains("\"kil\"") && error.contains("watchers"), "{error}");
    }

    #[test]
    fn rounds_are_counted_and_the_first_failure_ends_them() {
        let rounds = |arguments: SoakArgs, fails_in: u32| {
            let outcome = repeat(&TIERS[0], &arguments, |round| Ok((round != fails_in, vec![round.to_string()])));
            let outcome = outcome.unwrap();
            (outcome.rounds, outcome.passed, outcome.figures)
        };
        assert_eq!(rounds(arguments(Some(3), None), 9), (3, true, vec!["3".to_owned()]));
        assert_eq!(rounds(arguments(None, None), 99).0, TIERS[0].rounds);
        assert_eq!(rounds(arguments(Some(3), None), 2), (2, false, vec!["2".to_owned()]));
        assert_eq!(rounds(arguments(None, Some(0)), 9).0, 1, "at least one");
    }

    #[test]
    fn figures_are_taken_from_the_output_wherever_they_stand() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo 'test a ... figure: 5 ms'; echo other; echo 'figure: 6 ms'; exit 3"]);
        assert_eq!(one_round(command).unwrap(), (false, vec!["5 ms".to_owned(), "6 ms".to_owned()]));
    }
}
