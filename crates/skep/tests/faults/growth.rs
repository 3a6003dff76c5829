//! Objects that come and go leave nothing behind but the history, which has its limits.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use skep_conformance::api_server::ApiServer;
use tokio::task::JoinSet;

use crate::load::{WRITERS, config_map, config_maps, start, tiered};

/// How many objects are there at once.
const ALIVE: usize = 100;
/// The events that the server remembers (`HistoryLimits`), and about what one of them and its object cost.
const HISTORY_EVENTS: usize = 10_000;
const HISTORY_EVENT_BYTES: usize = 4500;
/// What memory and the file may differ by without growing.
const BREATH_BYTES: u64 = 8 * 1024 * 1024;

async fn come_and_go(maps: Api<ConfigMap>, writer: usize, objects: usize) {
    for batch in 0..objects / ALIVE {
        let names: Vec<String> = (0..ALIVE).map(|number| format!("brief-{writer}-{batch}-{number}")).collect();
        for name in &names {
            maps.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
        }
        for name in &names {
            maps.delete(name, &DeleteParams::default()).await.unwrap();
        }
    }
}

async fn run(server: &ApiServer, objects: usize) -> (u64, u64) {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(come_and_go(config_maps(server).await, writer, objects / WRITERS));
    }
    writers.join_all().await;
    (server.resident_bytes(), server.data_bytes().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_come_and_go_leave_nothing_behind() {
    // Each half in the long form fills the history.
    let half = tiered(800, 10_000);
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let (memory, file) = run(&server, half).await;
    let (memory_after, file_after) = run(&server, half).await;
    let remembered = |objects: usize| (2 * objects).min(HISTORY_EVENTS) * HISTORY_EVENT_BYTES;
    let history = (remembered(2 * half) - remembered(half)) as u64;
    let mebibytes = |bytes: u64| bytes / (1024 * 1024);
    println!(
        "figure: {half} and {} objects came and went: {} and {} MiB resident, {} and {} MiB on disk",
        2 * half,
        mebibytes(memory),
        mebibytes(memory_after),
        mebibytes(file),
        mebibytes(file_after)
    );
    assert!(memory_after <= memory + history + BREATH_BYTES, "{memory} bytes of memory became {memory_after}");
    assert!(file_after <= file + BREATH_BYTES, "{file} bytes on disk became {file_after}");
}
