//! Many clients at once, for some time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::client::Client;
use super::measures::Load;
use super::process::Process;
use crate::measure::Measure;

/// How much of the time passes before anything counts.
const WARM_UP: u32 = 5;

/// What came out of one load.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) rate: f64,
    /// In microseconds, as the two that follow.
    pub(super) median: f64,
    pub(super) tail: f64,
    pub(super) cpu: Option<f64>,
}

impl Outcome {
    /// The figures as those of a load.
    pub(super) fn of(&self, load: &Load) -> impl Iterator<Item = (Measure, f64)> {
        let cpu = self.cpu.map(|cpu| (load.cpu, cpu));
        [(load.rate, self.rate), (load.median, self.median), (load.tail, self.tail)].into_iter().chain(cpu)
    }
}

/// Calls a tool with so many clients for so long. `between` is what stands before the server.
pub(super) async fn run(
    address: SocketAddr,
    between: Option<&Process>,
    tool: &'static str,
    clients: usize,
    time: Duration,
) -> anyhow::Result<Outcome> {
    let counts = Arc::new(AtomicBool::new(false));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut calling = JoinSet::new();
    for _ in 0..clients {
        let mut client = Client::in_session(address).await?;
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
    times.sort_unstable();
    let calls = f64::from(u32::try_from(times.len())?);
    let at = |part: usize| -> anyhow::Result<f64> {
        let index = (times.len() * part / 100).min(times.len().saturating_sub(1));
        Ok(times.get(index).context("no call ended in time")?.as_secs_f64() * 1e6)
    };
    let cpu = cpu_before.zip(cpu_after).map(|(before, after)| after.saturating_sub(before).as_secs_f64() * 1e6 / calls);
    Ok(Outcome { rate: calls / elapsed.as_secs_f64(), median: at(50)?, tail: at(99)?, cpu })
}
