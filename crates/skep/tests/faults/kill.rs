//! `kill -9` under a load of writes, several times on the same data: nothing that was acknowledged is lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::task::JoinSet;

use crate::load::{WRITERS, config_map, config_maps, is_soak, revision, start, tiered};

const KILLS: usize = 5;
/// How long the load may take until it is killed.
const LOAD_LIMIT: Duration = Duration::from_mins(5);
/// How soon all objects must be served again. The short form shares the machine with other tests and is not optimised.
const REOPEN_LIMIT: Duration = Duration::from_secs(1);

/// Steps of an object: created, every other one updated, every fifth one deleted after that.
fn steps(number: usize) -> usize {
    1 + usize::from(number.is_multiple_of(2)) + usize::from(number.is_multiple_of(10))
}

/// The last thing that the server said about an object.
#[derive(Debug, Clone, Copy)]
struct Acknowledged {
    step: usize,
    /// None for a deletion, whose answer does not tell.
    revision: Option<u64>,
}

async fn make_step(maps: &Api<ConfigMap>, name: &str, step: usize) -> Result<Acknowledged, kube::Error> {
    let answer = match step {
        1 => Some(maps.create(&PostParams::default(), &config_map(name, "1")).await?),
        2 => {
            let patch = Patch::Merge(json!({ "data": { "step": "2" } }));
            Some(maps.patch(name, &PatchParams::default(), &patch).await?)
        }
        _ => {
            maps.delete(name, &DeleteParams::default()).await?;
            None
        }
    };
    Ok(Acknowledged { step, revision: answer.as_ref().map(revision) })
}

/// Writes until the server is gone.
async fn write(
    maps: Api<ConfigMap>,
    numbers: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
) -> HashMap<usize, Acknowledged> {
    let mut acknowledged = HashMap::new();
    loop {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        for step in 1..=steps(number) {
            match make_step(&maps, &format!("load-{number}"), step).await {
                Ok(answer) => acknowledged.insert(number, answer),
                Err(kube::Error::Api(status)) => panic!("step {step} of {number} was refused: {status:?}"),
                Err(_) => return acknowledged,
            };
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_under_load_loses_no_acknowledged_write() {
    let objects = tiered(250, 10_000);
    let folder = tempfile::tempdir().unwrap();
    let numbers = Arc::new(AtomicUsize::new(1));
    let done = Arc::new(AtomicUsize::new(0));
    let mut acknowledged: HashMap<usize, Acknowledged> = HashMap::new();
    let mut slowest = Duration::ZERO;
    let mut server = start(folder.path()).await;
    for kill in 1..=KILLS {
        let mut writers = JoinSet::new();
        for _ in 0..WRITERS {
            writers.spawn(write(config_maps(&server).await, numbers.clone(), done.clone()));
        }
        let begun = Instant::now();
        while done.load(Ordering::Relaxed) < objects * kill / KILLS {
            assert!(begun.elapsed() < LOAD_LIMIT, "the load does not get on: {done:?} of {objects}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(server);
        for of_one in writers.join_all().await {
            acknowledged.extend(of_one);
        }
        server = start(folder.path()).await;
        slowest = slowest.max(server.ready_after());
        check(&config_maps(&server).await, &acknowledged, WRITERS * kill).await;
    }
    let lived = acknowledged.values().filter(|last| last.step < 3).count();
    println!(
        "figure: {} objects acknowledged, {lived} still there after {KILLS} kills, reopened in {} ms at most",
        acknowledged.len(),
        slowest.as_millis()
    );
    assert!(!is_soak() || slowest < REOPEN_LIMIT, "reopened in {slowest:?}");
}

async fn check(maps: &Api<ConfigMap>, acknowledged: &HashMap<usize, Acknowledged>, most_ahead: usize) {
    let list = maps.list(&ListParams::default()).await.unwrap();
    let found: HashMap<String, ConfigMap> =
        list.items.into_iter().map(|map| (map.metadata.name.clone().unwrap(), map)).collect();
    let mut ahead = 0;
    for (number, known) in acknowledged {
        let map = found.get(&format!("load-{number}"));
        let step: usize = map.map_or(3, |map| map.data.as_ref().unwrap()["step"].parse().unwrap());
        assert!(step <= steps(*number), "{number} is gone or beyond its last step: {known:?}");
        assert!(step == known.step || step == known.step + 1, "{number}: {known:?}, found step {step}");
        if step == known.step {
            assert_eq!(map.map(revision), known.revision, "{number}: {known:?}");
        }
        ahead += usize::from(step > known.step);
    }
    // Each writer had one write under way when the server was killed.
    assert!(ahead <= most_ahead, "{ahead} objects are further than anyone asked for");
}
