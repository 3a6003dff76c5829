//! Many watchers over connections of their own: each sees every event, in order, exactly once.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::load::{WRITERS, config_map, config_maps, revision, start, tiered};

const WATCHERS: usize = 200;
/// How long all watchers together may take.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long to look for an event too many.
const QUIET: Duration = Duration::from_millis(200);

/// What a watcher notes of an event: what happened, to whom, and when.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    revision: u64,
    what: &'static str,
    name: String,
}

impl Seen {
    fn of(event: &WatchEvent<ConfigMap>) -> Self {
        let (what, map) = match event {
            WatchEvent::Added(map) => ("added", map),
            WatchEvent::Modified(map) => ("modified", map),
            WatchEvent::Deleted(map) => ("deleted", map),
            other => panic!("{other:?}"),
        };
        Self { revision: revision(map), what, name: map.metadata.name.clone().unwrap() }
    }
}

async fn watch(maps: Api<ConfigMap>, from: String, total: usize) -> Vec<Seen> {
    let mut events = maps.watch(&WatchParams::default(), &from).await.unwrap().boxed();
    let mut seen = Vec::with_capacity(total);
    while seen.len() < total {
        seen.push(Seen::of(&events.try_next().await.unwrap().unwrap()));
    }
    let more = timeout(QUIET, events.try_next()).await;
    assert!(more.is_err(), "an event too many: {more:?}");
    seen
}

/// Creates, updates and deletes; the answers say at which revision, but for deletions.
async fn write(maps: Api<ConfigMap>, writer: usize, objects: usize) -> Vec<Seen> {
    let mut written = Vec::new();
    for number in 0..objects {
        let name = format!("watched-{writer}-{number}");
        let created = maps.create(&PostParams::default(), &config_map(&name, "1")).await.unwrap();
        written.push(Seen { revision: revision(&created), what: "added", name: name.clone() });
        let patch = Patch::Merge(json!({ "data": { "step": "2" } }));
        let patched = maps.patch(&name, &PatchParams::default(), &patch).await.unwrap();
        written.push(Seen { revision: revision(&patched), what: "modified", name: name.clone() });
        maps.delete(&name, &DeleteParams::default()).await.unwrap();
        written.push(Seen { revision: 0, what: "deleted", name });
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_watchers_see_every_event_in_order_exactly_once() {
    let objects = tiered(10, 400);
    let total = WRITERS * objects * 3;
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let maps = config_maps(&server).await;
    let from = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let begun = Instant::now();
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        watchers.spawn(watch(config_maps(&server).await, from.clone(), total));
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(config_maps(&server).await, writer, objects));
    }
    let written: Vec<Seen> = writers.join_all().await.into_iter().flatten().collect();
    let histories = timeout(PATIENCE, watchers.join_all()).await.unwrap();

    let first = &histories[0];
    assert!(first.is_sorted_by(|earlier, later| earlier.revision < later.revision), "out of order, or twice");
    assert!(histories.iter().all(|history| history == first), "two watchers saw different things");
    let seen: HashMap<(&str, &str), u64> =
        first.iter().map(|event| ((event.name.as_str(), event.what), event.revision)).collect();
    assert_eq!(seen.len(), total, "something was seen twice");
    for event in &written {
        let revision = seen.get(&(event.name.as_str(), event.what)).copied();
        let is_right = if event.what == "deleted" { revision.is_some() } else { revision == Some(event.revision) };
        assert!(is_right, "{event:?} was seen at {revision:?}");
    }
    println!(
        "figure: {WATCHERS} watchers saw {total} events each in {:.1} s, {} MiB resident",
        begun.elapsed().as_secs_f64(),
        server.resident_bytes() / (1024 * 1024)
    );
}
