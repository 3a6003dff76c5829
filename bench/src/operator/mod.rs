//! `skep operator` on a real API server: many MCPServers at once, beside a client that sends the same writes and thinks
//! nothing of it.

mod cluster;
mod counts;
mod plain;
mod process;
mod round;

use std::path::Path;
use std::time::Duration;

use crate::measure::{Figures, Measure, Target};
use crate::table::Table;

/// The design promises so much memory at so many servers.
const MEMORY_LIMIT: (usize, f64) = (1000, 40.0);

const CHILDREN: Measure = Measure::time("first create to last child").must_be(Target::Times(0.67));
const WRITES: Measure = Measure::count("writes per MCPServer");
const REQUESTS: Measure = Measure::count("requests per MCPServer, watches aside");
const MEMORY: Measure = Measure::memory("memory of the operator");
const MEMORY_RESTARTED: Measure = Measure::memory("memory after a restart");
const WRITES_AT_REST: Measure = Measure::count("writes per minute at rest").must_be(Target::Below(1.0));
const LISTS_AT_REST: Measure = Measure::count("lists per minute at rest").must_be(Target::Below(1.0));

/// Measures each number of servers on a fresh API server.
pub(crate) async fn run(skep: &Path, numbers: &[usize], rest: Duration) -> anyhow::Result<Vec<Table>> {
    let mut tables = Vec::new();
    for &servers in numbers {
        eprintln!("{servers} MCPServers");
        let round::Round { plain, operator } = round::run(skep, servers, rest).await?;
        tables.push(Table {
            title: format!("{servers} MCPServers at once"),
            measures: vec![
                CHILDREN,
                WRITES,
                REQUESTS,
                limited(MEMORY, servers),
                limited(MEMORY_RESTARTED, servers),
                WRITES_AT_REST,
                LISTS_AT_REST,
            ],
            figures: vec![
                Figures { of: "skep operator", rounds: vec![operator] },
                Figures { of: "plain client", rounds: vec![plain] },
            ],
        });
    }
    Ok(tables)
}

/// A measure of memory, with what is promised for so many servers.
fn limited(memory: Measure, servers: usize) -> Measure {
    let (most, limit) = MEMORY_LIMIT;
    if servers <= most { memory.must_be(Target::Below(limit)) } else { memory }
}
