//! All measurements of one server, on one fresh start of it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::task::JoinSet;

use super::measures;
use super::objects::{CONFIG_MAPS, config_map, custom_resource, install};
use super::server::Server;
use crate::load::{Call, send, send_all};
use crate::measure::{Measure, mebibytes, milliseconds};

const CONNECTIONS: usize = 4;
const CONFIG_MAPS_AT_ONCE: usize = 2000;
const CONFIG_MAPS_ONE_BY_ONE: usize = 500;
const UPDATES: usize = 2000;
const LISTS: usize = 9;
const WATCHERS: usize = 100;
const WATCHED_WRITES: usize = 50;
/// Watched writes do not queue up behind each other.
const BETWEEN_WRITES: Duration = Duration::from_millis(20);
const WATCH_LIMIT: Duration = Duration::from_secs(30);

pub(super) async fn run(server: &Server, objects: usize) -> anyhow::Result<Vec<(Measure, f64)>> {
    let client = server.client().await?;
    let collection = install(&client).await?;

    let creates = (0..objects).map(|number| Call::post(&collection, &custom_resource(number))).collect();
    let custom_resources = send_all(server.clients(CONNECTIONS).await?, creates).await?;
    let memory = server.resident_bytes();

    let list = Call::get(&collection);
    let mut lists = Vec::new();
    let mut listed = Vec::new();
    for _ in 0..LISTS {
        let begun = Instant::now();
        listed = send(&client, &list).await?;
        lists.push(milliseconds(begun.elapsed()));
    }
    let updates = updates_of(&collection, &listed)?;
    let replaced = updates.len();
    let replacing = send_all(server.clients(CONNECTIONS).await?, updates).await?;

    let creates = |kind: &str, count: usize| -> Vec<Call> {
        (0..count).map(|number| Call::post(CONFIG_MAPS, &config_map(&format!("{kind}-{number}")))).collect()
    };
    let at_once = send_all(server.clients(CONNECTIONS).await?, creates("at-once", CONFIG_MAPS_AT_ONCE)).await?;
    let one_by_one = send_all(server.clients(1).await?, creates("one-by-one", CONFIG_MAPS_ONE_BY_ONE)).await?;
    let mut delays = fan_out(server).await?;

    Ok(vec![
        (measures::START_TO_READY, milliseconds(server.ready_after())),
        (measures::CUSTOM_RESOURCES, per_second(objects, custom_resources)),
        (measures::CONFIG_MAPS, per_second(CONFIG_MAPS_AT_ONCE, at_once)),
        (measures::CONFIG_MAPS_ONE_BY_ONE, per_second(CONFIG_MAPS_ONE_BY_ONE, one_by_one)),
        (measures::UPDATES, per_second(replaced, replacing)),
        (measures::LIST, percentile(&mut lists, 50)?),
        (measures::FAN_OUT, percentile(&mut delays, 50)?),
        (measures::SLOWEST_FAN_OUT, percentile(&mut delays, 99)?),
        (measures::MEMORY, mebibytes(memory)),
        (measures::MEMORY_AFTERWARDS, mebibytes(server.resident_bytes())),
    ])
}

/// Replaces objects of a list by slightly different ones.
fn updates_of(collection: &str, list: &[u8]) -> anyhow::Result<Vec<Call>> {
    let mut list: Value = serde_json::from_slice(list)?;
    let items = list["items"].as_array_mut().context("a list without items")?;
    Ok(items
        .iter_mut()
        .take(UPDATES)
        .map(|object| {
            object["spec"]["image"] = "example.com/server:2".into();
            Call::put(&format!("{collection}/{}", object["metadata"]["name"].as_str().unwrap_or_default()), object)
        })
        .collect())
}

/// The time from sending a write to its event at each of many watchers, in milliseconds.
async fn fan_out(server: &Server) -> anyhow::Result<Vec<f64>> {
    let client = server.client().await?;
    let list: Value = serde_json::from_slice(&send(&client, &Call::get(&format!("{CONFIG_MAPS}?limit=1"))).await?)?;
    let from = list["metadata"]["resourceVersion"].as_str().context("a list without a revision")?;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}");
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        let client = server.client().await?;
        let mut events = client.send(Call::get(&path).request()?).await?.into_body();
        watchers.spawn(async move {
            let mut arrived = Vec::with_capacity(WATCHED_WRITES);
            while arrived.len() < WATCHED_WRITES {
                let frame = events.frame().await.context("the watch ended")??;
                let now = Instant::now();
                // One event a line, in the order of the writes.
                let data = frame.data_ref().map_or(&[][..], |data| data);
                arrived.extend(data.iter().filter(|byte| **byte == b'\n').map(|_| now));
            }
            anyhow::Ok(arrived)
        });
    }
    let mut sent = Vec::with_capacity(WATCHED_WRITES);
    for number in 0..WATCHED_WRITES {
        let write = Call::post(CONFIG_MAPS, &config_map(&format!("watched-{number}")));
        sent.push(Instant::now());
        send(&client, &write).await?;
        tokio::time::sleep(BETWEEN_WRITES).await;
    }
    let mut delays = Vec::new();
    while let Some(watcher) = tokio::time::timeout(WATCH_LIMIT, watchers.join_next()).await? {
        delays.extend(sent.iter().zip(watcher??).map(|(sent, arrived)| milliseconds(arrived - *sent)));
    }
    Ok(delays)
}

fn percentile(values: &mut [f64], share: usize) -> anyhow::Result<f64> {
    values.sort_by(f64::total_cmp);
    values
        .get((values.len() * share / 100).min(values.len().saturating_sub(1)))
        .copied()
        .context("nothing was measured")
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn per_second(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}
