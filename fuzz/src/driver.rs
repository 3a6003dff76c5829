//! Runs a target on mutations of its corpus for some time. Blind, but it needs no special compiler.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::mutate::Mutator;
use crate::random::Random;
use crate::targets::Target;

/// A run beyond this is taken for one that never ends. No request of this size may take as long, whatever the build.
const HANG: Duration = Duration::from_secs(20);
/// What the threads of the server have.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// How long a target ran without a finding.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    pub runs: u64,
    pub slowest: Duration,
}

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    /// The target panicked, or did not come back.
    Found {
        input: Vec<u8>,
        what: &'static str,
    },
    Corpus(io::Error),
    Thread(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { input, what } => {
                write!(formatter, "{what} on this input:\n{}", String::from_utf8_lossy(input))
            }
            Self::Corpus(error) => write!(formatter, "cannot read the corpus: {error}"),
            Self::Thread(error) => write!(formatter, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// What the thread that runs the target is at.
#[derive(Debug)]
struct Progress {
    begun: Instant,
    input: Vec<u8>,
    runs: u64,
    slowest: Duration,
}

/// The corpus of a target: inputs that reach most of its code.
pub fn corpus(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    files.sort();
    files.iter().map(fs::read).collect()
}

/// Runs the target on its corpus, and then on mutations of it until the time is up, at least one.
pub fn run(target: &'static Target, time: Duration, seed: u64) -> Result<Report, Failure> {
    let corpus = corpus(target).map_err(Failure::Corpus)?;
    let start = Progress { begun: Instant::now(), input: Vec::new(), runs: 0, slowest: Duration::ZERO };
    let progress = Arc::new(Mutex::new(start));
    let enough = Arc::new(AtomicBool::new(false));
    let worker = thread::Builder::new().name(target.name.to_owned()).stack_size(STACK_BYTES).spawn({
        let (progress, enough) = (progress.clone(), enough.clone());
        move || work(target, &corpus, seed, &progress, &enough)
    });
    let worker = worker.map_err(Failure::Thread)?;
    let begun = Instant::now();
    while !worker.is_finished() {
        thread::sleep(Duration::from_millis(10));
        enough.store(begun.elapsed() >= time, Ordering::Relaxed);
        let now = progress.lock().unwrap_or_else(PoisonError::into_inner);
        if now.begun.elapsed() > HANG {
            return Err(Failure::Found { input: now.input.clone(), what: "it hangs" });
        }
    }
    let panicked = worker.join().is_err();
    let last = progress.lock().unwrap_or_else(PoisonError::into_inner);
    if panicked {
        return Err(Failure::Found { input: last.input.clone(), what: "it panics" });
    }
    Ok(Report { runs: last.runs, slowest: last.slowest })
}

fn work(target: &Target, corpus: &[Vec<u8>], seed: u64, progress: &Mutex<Progress>, enough: &AtomicBool) {
    let mutator = Mutator::new(corpus);
    let mut random = Random::new(seed);
    let mutations = std::iter::repeat_with(|| mutator.input(&mut random));
    for (number, input) in corpus.iter().cloned().chain(mutations).enumerate() {
        // All of the corpus and one more, however slow the machine is.
        if number > corpus.len() && enough.load(Ordering::Relaxed) {
            return;
        }
        let begun = Instant::now();
        {
            let mut now = progress.lock().unwrap_or_else(PoisonError::into_inner);
            (now.begun, now.input) = (begun, input.clone());
        }
        (target.run)(&input);
        let mut now = progress.lock().unwrap_or_else(PoisonError::into_inner);
        now.runs += 1;
        now.slowest = now.slowest.max(begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panics_on_a_digit(input: &[u8]) {
        assert!(!input.contains(&b'7'), "a digit");
    }

    #[test]
    fn a_panic_is_found_with_its_input() {
        static TARGET: Target = Target { name: "json_path", run: panics_on_a_digit };
        let Err(Failure::Found { input, what }) = run(&TARGET, Duration::from_mins(1), 1) else {
            panic!("nothing was found")
        };
        assert!(input.contains(&b'7') && what == "it panics");
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let corpus = [b"{\"a\":[1,2]}\n---\nrest".to_vec()];
        let inputs = |seed| {
            let (mutator, mut random) = (Mutator::new(&corpus), Random::new(seed));
            (0..50).map(|_| mutator.input(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }
}
