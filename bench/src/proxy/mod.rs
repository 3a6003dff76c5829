//! The proxy beside a proxy that does nothing, and beside no proxy: real MCP sessions, in one run on one machine.

mod client;
mod idle;
mod load;
mod measures;
mod part;
mod process;
mod round;

use std::time::Duration;

pub(crate) use measures::all as measures;
pub(crate) use part::{COMMAND as PART, Part};

use crate::measure::Figures;
use process::Process;

/// How much is measured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) rounds: u32,
    /// How long each load lasts.
    pub(crate) load: Duration,
    /// How many sessions are idle at the same time.
    pub(crate) sessions: usize,
    /// How many sessions begin and end.
    pub(crate) cycles: usize,
}

/// What stands between the clients and the server. The first one is ours, the second one what ours is compared with.
const PATHS: [Path; 3] = [Path::Skep, Path::Bare, Path::Direct];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    Skep,
    Bare,
    Direct,
}

impl Path {
    fn name(self) -> &'static str {
        match self {
            Self::Skep => "skep",
            Self::Bare => "bare hyper proxy",
            Self::Direct => "direct",
        }
    }

    /// Starts what stands before a server, if anything does.
    async fn start(self, server: &Process) -> anyhow::Result<Option<Process>> {
        let part = match self {
            Self::Skep => Part::Skep { server: server.address },
            Self::Bare => Part::Bare { server: server.address },
            Self::Direct => return Ok(None),
        };
        Process::start(&part).await.map(Some)
    }
}

/// Measures all of them in turns, so that what else happens on the machine happens to all.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figures>> {
    let mut figures = PATHS.map(|path| Figures { of: path.name(), rounds: Vec::new() });
    for number in 1..=settings.rounds {
        eprintln!("round {number} of {}", settings.rounds);
        let measured = round::run(settings).await?;
        for (figures, measured) in figures.iter_mut().zip(measured) {
            figures.rounds.push(measured);
        }
    }
    Ok(figures.into())
}
