//! The proxy beside a proxy that does nothing, and beside no proxy: real MCP sessions, in one run on one machine.

mod idle;
mod measures;
mod round;

use std::time::Duration;

pub(crate) use measures::all as measures;

use crate::mcp::part::chain;
use crate::mcp::{Part, Process};
use crate::measure::Figures;

/// How much is measured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) rounds: usize,
    /// How long each load lasts.
    pub(crate) load: Duration,
    /// How many sessions are idle at the same time.
    pub(crate) sessions: usize,
    /// How many sessions begin and end.
    pub(crate) cycles: usize,
}

/// What stands between the clients and the server. The first one is ours, the second one what ours is compared with, the
/// last one is nothing.
const PATHS: [Path; 4] = [Path::Skep, Path::Bare, Path::Unchained, Path::Direct];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    Skep,
    Bare,
    Unchained,
    Direct,
}

impl Path {
    fn name(self) -> &'static str {
        match self {
            Self::Skep => "skep, default chain",
            Self::Bare => "bare hyper proxy",
            Self::Unchained => "skep, no chain",
            Self::Direct => "direct",
        }
    }

    /// Starts what stands before a server, if anything does.
    async fn start(self, server: &Process) -> anyhow::Result<Option<Process>> {
        let server = server.door.address;
        let part = match self {
            Self::Skep => Part::Skep { server, chain: chain::DEFAULT.into(), around: None },
            Self::Bare => Part::Bare { server },
            Self::Unchained => Part::Skep { server, chain: Vec::new(), around: None },
            Self::Direct => return Ok(None),
        };
        Process::start(&part, None).await.map(Some)
    }
}

/// Measures all of them in turns, so that what else happens on the machine happens to all.
pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figures>> {
    let mut figures = PATHS.map(|path| Figures { of: path.name(), rounds: Vec::new() });
    for number in 0..settings.rounds {
        eprintln!("round {} of {}", number + 1, settings.rounds);
        let measured = round::run(settings, number).await?;
        for (figures, measured) in figures.iter_mut().zip(measured) {
            figures.rounds.push(measured);
        }
    }
    Ok(figures.into())
}
