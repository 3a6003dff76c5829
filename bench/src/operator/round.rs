//! One number of servers on one fresh API server: first by the plain client, then by the operator.

use std::path::Path;
use std::time::{Duration, Instant};

use skep_conformance::control_plane::ControlPlane;

use super::cluster::{self, Arrivals, PLAIN, WATCHED};
use super::counts::Counts;
use super::plain::{PATTERN, Patterns};
use super::process::Operator;
use super::{CHILDREN, LISTS_AT_REST, MEMORY, MEMORY_RESTARTED, REQUESTS, WRITES, WRITES_AT_REST, limited};
use crate::load::{Call, send, send_all};
use crate::measure::{Measure, mebibytes, milliseconds};

/// More do not make the plain client faster.
const CONNECTIONS: usize = 8;
/// The operator is at rest when it has asked for nothing for so long.
const QUIET: Duration = Duration::from_secs(3);
const QUIET_LIMIT: Duration = Duration::from_mins(10);
const POLL: Duration = Duration::from_millis(500);

/// The figures of both.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) plain: Vec<(Measure, f64)>,
    pub(super) operator: Vec<(Measure, f64)>,
}

pub(super) async fn run(skep: &Path, servers: usize, rest: Duration) -> anyhow::Result<Round> {
    let plane = cluster::start().await?;
    let operator = Operator::start(skep, &plane.admin_kubeconfig(), WATCHED, plane.folder()).await?;
    let client = plane.admin().await?;
    let arrivals = Arrivals::begin(&client).await?;
    send(&client, &Call::post(&cluster::servers(WATCHED), &cluster::server(PATTERN))).await?;
    arrivals.wait_for(1).await?;
    let before = at_rest(&operator).await?;
    let patterns = Patterns::learn(&client).await?;

    let plain = plain(&plane, &patterns, servers).await?;
    let took = by_operator(&plane, servers).await?;
    let settled = at_rest(&operator).await?;
    let resident = operator.resident_bytes()?;
    tokio::time::sleep(rest).await;
    let rested = operator.counts().await? - settled;
    drop(operator);
    let restarted = Operator::start(skep, &plane.admin_kubeconfig(), WATCHED, plane.folder()).await?;
    at_rest(&restarted).await?;

    let spent = settled - before;
    // The creation of the server is a request too, though not the operator's.
    let share = |count: u64| per(count, servers) + 1.0;
    let minutes = rest.as_secs_f64() / 60.0;
    let operator = vec![
        (CHILDREN, milliseconds(took)),
        (WRITES, share(spent.writes)),
        (REQUESTS, share(spent.requests)),
        (limited(MEMORY, servers), mebibytes(resident)),
        (limited(MEMORY_RESTARTED, servers), mebibytes(restarted.resident_bytes()?)),
        (WRITES_AT_REST, per(rested.writes, 1) / minutes),
        (LISTS_AT_REST, per(rested.lists, 1) / minutes),
    ];
    Ok(Round { plain, operator })
}

/// Creates servers and everything that belongs to them.
async fn plain(plane: &ControlPlane, patterns: &Patterns, servers: usize) -> anyhow::Result<Vec<(Measure, f64)>> {
    let mut children = Vec::new();
    for number in 0..servers {
        children.extend(patterns.calls(&name(number))?);
    }
    let own = send_all(cluster::clients(plane, CONNECTIONS).await?, creates(PLAIN, servers)).await?;
    let rest = send_all(cluster::clients(plane, CONNECTIONS).await?, children).await?;
    Ok(vec![(CHILDREN, milliseconds(own + rest)), (WRITES, per(u64::try_from(patterns.count())?, 1))])
}

/// Creates servers, and waits until the operator has written everything that belongs to them.
async fn by_operator(plane: &ControlPlane, servers: usize) -> anyhow::Result<Duration> {
    let arrivals = Arrivals::begin(&plane.admin().await?).await?;
    let clients = cluster::clients(plane, CONNECTIONS).await?;
    let begun = Instant::now();
    let (created, arrived) = tokio::join!(send_all(clients, creates(WATCHED, servers)), arrivals.wait_for(servers));
    created?;
    arrived?;
    Ok(begun.elapsed())
}

fn creates(namespace: &str, servers: usize) -> Vec<Call> {
    (0..servers).map(|number| Call::post(&cluster::servers(namespace), &cluster::server(&name(number)))).collect()
}

fn name(number: usize) -> String {
    format!("server-{number}")
}

/// Waits until the operator asks for nothing any more.
async fn at_rest(operator: &Operator) -> anyhow::Result<Counts> {
    let begun = Instant::now();
    let (mut counts, mut since) = (operator.counts().await?, Instant::now());
    while since.elapsed() < QUIET {
        anyhow::ensure!(begun.elapsed() < QUIET_LIMIT, "the operator does not come to rest");
        tokio::time::sleep(POLL).await;
        let now = operator.counts().await?;
        if now != counts {
            (counts, since) = (now, Instant::now());
        }
    }
    Ok(counts)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn per(count: u64, objects: usize) -> f64 {
    count as f64 / objects as f64
}
