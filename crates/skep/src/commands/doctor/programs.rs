//! Programs of the machine that something needs. Each is asked for its version: one that does not answer is of no use.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use skep_node::image::find_program;

use super::{Finding, State};

/// How long a program may take to tell its version, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// Something that programs are needed for.
struct Wanted {
    check: &'static str,
    /// Any of these sets will do.
    programs: &'static [&'static [Program]],
    needed_for: &'static str,
    remedy: &'static str,
}

struct Program {
    name: &'static str,
    /// What makes it tell its version.
    version: &'static [&'static str],
}

const fn program(name: &'static str) -> Program {
    Program { name, version: &["--version"] }
}

/// Only one that can make environments; Debian has that in a package of its own.
const PYTHON: Program = Program {
    name: "python3",
    version: &["-c", "import ensurepip, sys, venv; print('Python', sys.version.split()[0])"],
};

const WANTED: [Wanted; 5] = [
    Wanted {
        check: "node",
        programs: &[&[program("node"), program("npm")]],
        needed_for: "images npx://PACKAGE",
        remedy: "install Node.js 22 or newer, which brings npm: https://nodejs.org",
    },
    Wanted {
        check: "uv",
        programs: &[&[program("uv")], &[PYTHON]],
        needed_for: "images uvx://PACKAGE",
        remedy: "install uv: https://docs.astral.sh/uv; or Python 3 with venv (Debian: python3-venv)",
    },
    Wanted {
        check: "pasta",
        programs: &[&[program("pasta")]],
        needed_for: "internet access of pods",
        remedy: "install the package passt",
    },
    Wanted {
        check: "kubectl",
        programs: &[&[Program { name: "kubectl", version: &["version", "--client"] }]],
        needed_for: "more than skep get, apply, delete and logs can do",
        remedy: "install it: https://kubernetes.io/docs/tasks/tools",
    },
    Wanted {
        check: "go",
        programs: &[&[Program { name: "go", version: &["version"] }]],
        needed_for: "the tests of Skep itself (cargo xtask test)",
        remedy: "install Go 1.26 or newer, if you want to work on Skep: https://go.dev",
    },
];

/// Looks for all of them, side by side.
pub(super) fn look() -> Vec<Finding> {
    thread::scope(|scope| {
        let looking = WANTED.each_ref().map(|wanted| scope.spawn(|| wanted.look()));
        // One that has panicked has told so.
        looking.into_iter().filter_map(|one| one.join().ok()).collect()
    })
}

impl Wanted {
    fn look(&self) -> Finding {
        let Self { check, programs, needed_for, remedy } = self;
        let mut obstacles = Vec::new();
        for set in *programs {
            let found: Result<Vec<String>, Option<String>> = set.iter().map(Program::look).collect();
            match found {
                Ok(found) => {
                    let found = found.join(", ");
                    return Finding { check, state: State::Good, found, needed_for, remedy: Vec::new() };
                }
                Err(obstacle) => obstacles.extend(obstacle),
            }
        }
        let found = obstacles.into_iter().next().unwrap_or_else(|| "not installed".to_owned());
        Finding { check, state: State::Missing, found, needed_for, remedy: vec![(*remedy).to_owned()] }
    }
}

impl Program {
    /// Where it is and its version; otherwise why it is of no use, when it is there at all.
    fn look(&self) -> Result<String, Option<String>> {
        let path = find_program(self.name).ok_or(None)?;
        let mut command = Command::new(&path);
        command.args(self.version);
        match first_line(command) {
            Ok(version) => Ok(format!("{} ({version})", path.display())),
            Err(error) => Err(Some(format!("{} does not work: {error}", path.display()))),
        }
    }
}

/// The first line that a command prints, if it succeeds in time.
fn first_line(mut command: Command) -> Result<String, String> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < LIMIT => sleep(PAUSE),
            other => {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(other
                    .err()
                    .map_or_else(|| format!("no answer in {} s", LIMIT.as_secs()), |error| error.to_string()));
            }
        }
    };
    let mut text = String::new();
    // What is no text tells nothing.
    if status.success() {
        let _ = child.stdout.take().map(|mut out| out.read_to_string(&mut text));
        return Ok(text.lines().next().unwrap_or("it tells no version").trim().to_owned());
    }
    let _ = child.stderr.take().map(|mut side| side.read_to_string(&mut text));
    Err(text.lines().rfind(|line| !line.trim().is_empty()).map_or_else(|| status.to_string(), str::to_owned))
}
