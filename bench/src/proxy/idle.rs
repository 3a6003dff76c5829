//! What sessions cost that do nothing, and what is left of those that have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;

use super::measures::Cycles;
use crate::mcp::Process;
use crate::mcp::client::Client;
use crate::measure::Measure;

/// How many clients begin and end sessions at the same time.
const CYCLING: usize = 16;
pub(super) const KIBIBYTES_PER_MEBIBYTE: f64 = 1024.0;

/// What one idle session costs, in KiB: alone, and with a stream that nothing is said on.
pub(super) async fn sessions(process: &Process, count: usize) -> anyhow::Result<(f64, f64)> {
    let each = f64::from(u32::try_from(count)?);
    // What is made once is no part of a session.
    let first = Client::in_session(&process.door).await?;
    let before = process.resident_kibibytes()?;
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(Client::in_session(&process.door).await?);
    }
    let with_sessions = process.resident_kibibytes()?;
    let mut streams = Vec::new();
    for client in &clients {
        streams.push(client.listen().await?);
    }
    let with_streams = process.resident_kibibytes()?;
    drop((first, streams, clients));
    Ok(((with_sessions - before) / each, (with_streams - before) / each))
}

/// Begins and ends so many sessions. What is held after a tenth of them is what many sessions need in any case.
pub(super) async fn cycles(process: &Process, count: usize, measures: &Cycles) -> anyhow::Result<[(Measure, f64); 3]> {
    let tenth = count / 10;
    cycle(process, tenth).await?;
    let before = process.resident_kibibytes()? / KIBIBYTES_PER_MEBIBYTE;
    cycle(process, count - tenth).await?;
    let after = process.resident_kibibytes()? / KIBIBYTES_PER_MEBIBYTE;
    Ok([(measures.before, before), (measures.after, after), (measures.growth, after - before)])
}

async fn cycle(process: &Process, count: usize) -> anyhow::Result<()> {
    let done = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CYCLING {
        let (done, door) = (Arc::clone(&done), process.door.clone());
        clients.spawn(async move {
            let mut client = Client::connect(&door).await?;
            while done.fetch_add(1, Ordering::Relaxed) < count {
                client.begin().await?;
                client.call("echo").await?;
                client.end().await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(joined) = clients.join_next().await {
        joined??;
    }
    Ok(())
}
