//! `skep up`, from its start to the first answer of a tool.

mod client;
mod machine;

use std::path::Path;

use tempfile::TempDir;

use crate::measure::{Figures, Measure, Target, milliseconds};
use machine::{Machine, Moments};

const API_SERVER: Measure = Measure::time("start to kubeconfig, fresh data");
const PORT: Measure = Measure::time("start to open port, fresh data");
const ANSWER: Measure = Measure::time("start to first tools/call, fresh data").must_be(Target::Below(1500.0));
const AGAIN: Measure = Measure::time("start to first tools/call, second start").must_be(Target::Below(1500.0));
const STOP: Measure = Measure::time("SIGTERM to end");

pub(crate) const ALL: [Measure; 5] = [API_SERVER, PORT, ANSWER, AGAIN, STOP];

/// Starts it on fresh data and on the same data again, so often.
pub(crate) fn run(skep: &Path, rounds: u32) -> anyhow::Result<Vec<Figures>> {
    let mut figures = Figures { of: "skep up", rounds: Vec::new() };
    for number in 1..=rounds {
        eprintln!("round {number} of {rounds}");
        let folder = TempDir::new()?;
        let (machine, Moments { api_server, port, answer }) = Machine::start(skep, folder.path())?;
        machine.stop()?;
        let (machine, again) = Machine::start(skep, folder.path())?;
        let stop = machine.stop()?;
        let times = [(API_SERVER, api_server), (PORT, port), (ANSWER, answer), (AGAIN, again.answer), (STOP, stop)];
        figures.rounds.push(times.map(|(measure, time)| (measure, milliseconds(time))).to_vec());
    }
    Ok(vec![figures])
}
