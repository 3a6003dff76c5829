//! Many clients at once, for some time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::client::{Client, Door};
use super::process::Process;
use crate::measure::{Measure, percentile};

/// How much of the time passes before anything counts.
const WARM_UP: u32 = 5;

/// What is measured of one load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) clients: usize,
    pub(crate) rate: Measure,
    pub(crate) median: Measure,
    pub(crate) tail: Measure,
    /// Processor time of what stands between the clients and the server, for one call.
    pub(crate) cpu: Measure,
}

impl Load {
    pub(crate) fn all(self) -> [Measure; 4] {
        [self.rate, self.median, self.tail, self.cpu]
    }
}

macro_rules! load {
    ($what:literal, 1) => {
        load!($what, 1, " client")
    };
    ($what:literal, $clients:literal) => {
        load!($what, $clients, " clients")
    };
    ($what:literal, $clients:literal, $noun:literal) => {
        $crate::mcp::load::Load {
            clients: $clients,
            rate: $crate::measure::Measure::rate(concat!($what, ", ", $clients, $noun)),
            median: $crate::measure::Measure::latency(concat!($what, ", ", $clients, $noun, ", median")),
            tail: $crate::measure::Measure::latency(concat!($what, ", ", $clients, $noun, ", 99th percentile")),
            cpu: $crate::measure::Measure::latency(concat!($what, ", ", $clients, $noun, ", processor")),
        }
    };
}
pub(crate) use load;

/// What came out of one load.
#[derive(Debug)]
pub(crate) struct Outcome {
    rate: f64,
    /// In microseconds, as the two that follow.
    median: f64,
    tail: f64,
    cpu: Option<f64>,
}

impl Outcome {
    /// The figures as those of a load.
    pub(crate) fn of(&self, load: &Load) -> impl Iterator<Item = (Measure, f64)> {
        let cpu = self.cpu.map(|cpu| (load.cpu, cpu));
        [(load.rate, self.rate), (load.median, self.median), (load.tail, self.tail)].into_iter().chain(cpu)
    }
}

/// Calls a tool with so many clients for so long. `between` is what stands before the server.
pub(crate) async fn run(
    door: &Door,
    between: Option<&Process>,
    tool: &'static str,
    clients: usize,
    time: Duration,
) -> anyhow::Result<Outcome> {
    let counts = Arc::new(AtomicBool::new(false));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut calling = JoinSet::new();
    for _ in 0..clients {
        let mut client = Client::in_session(door).await?;
        let (counts, is_over) = (Arc::clone(&counts), Arc::clone(&is_over));
        calling.spawn(async move {
            let mut times = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                client.call(tool).await?;
                if counts.load(Ordering::Relaxed) {
                    times.push(begun.elapsed());
                }
            }
            client.end().await?;
            anyhow::Ok(times)
        });
    }
    tokio::time::sleep(time / WARM_UP).await;
    counts.store(true, Ordering::Relaxed);
    let (begun, cpu_before) = (Instant::now(), between.map(Process::processor_time).transpose()?);
    tokio::time::sleep(time).await;
    counts.store(false, Ordering::Relaxed);
    let (elapsed, cpu_after) = (begun.elapsed(), between.map(Process::processor_time).transpose()?);
    is_over.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    while let Some(joined) = calling.join_next().await {
        times.append(&mut joined??);
    }
    let calls = f64::from(u32::try_from(times.len())?);
    let mut at = |part: usize| percentile(&mut times, part).context("no call ended in time");
    let cpu = cpu_before.zip(cpu_after).map(|(before, after)| after.saturating_sub(before).as_secs_f64() * 1e6 / calls);
    Ok(Outcome { rate: calls / elapsed.as_secs_f64(), median: at(50)?, tail: at(99)?, cpu })
}
