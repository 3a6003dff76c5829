//! A disk that is full: writes are refused and told of, nothing is lost, and it goes on when there is room again.
//!
//! The test starts itself again with a small disk of its own, in namespaces of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;

const DISK: &str = "SKEP_TEST_SMALL_DISK";
const DISK_SIZE: &str = "size=8m";
const FILLER_BYTES: usize = 3 * 1024 * 1024;
const OBJECT_BYTES: usize = 200 * 1024;
/// Far more than fit on the disk.
const MOST: usize = 100;
/// So many writes are refused before there is room again.
const REFUSED: usize = 20;
const PATIENCE: Duration = Duration::from_mins(3);

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        format!("mount -t tmpfs -o {DISK_SIZE} tmpfs \"$1\" || exit 77; exec \"$2\" --exact inside --nocapture");
    let output = Command::new("timeout")
        .args(["300", "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .env(DISK, folder.path())
        .output()
        .unwrap();
    let (told, complaint) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    if output.status.code() == Some(77) || complaint.starts_with("unshare: ") {
        skep_conformance::skip::skip("a_full_disk_refuses_writes_and_loses_nothing", "no namespaces here");
        return;
    }
    assert!(output.status.success(), "{told}{complaint}");
    // Once, however many writes were refused.
    let of_refusal: Vec<&str> = told.lines().filter(|line| line.contains("writes are refused")).collect();
    let [line] = of_refusal[..] else { panic!("{told}{complaint}") };
    assert!(line.contains("ERROR") && line.contains("store.redb: No space left on device"), "{line}");
    assert_eq!(told.matches("writes are accepted again").count(), 1, "{told}{complaint}");
}

/// The process with the small disk. Does nothing in an ordinary test run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inside() {
    let Some(disk) = std::env::var_os(DISK).map(PathBuf::from) else { return };
    tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::WARN).init();
    let filler = disk.join("filler");
    std::fs::write(&filler, vec![0; FILLER_BYTES]).unwrap();
    let store = Store::open(Some(&disk.join("store"))).unwrap();
    let mut kept = BTreeMap::new();
    let client = server(&store).await;
    fill(&client, &mut kept).await;
    std::fs::remove_file(&filler).unwrap();
    go_on(&client, &mut kept).await;
    assert_eq!(ready(&client).await, "ok");
    store.close().await;
    check(&disk, &kept).await;
}

async fn server(store: &Store) -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    Server::new(store.clone(), tokens, "127.0.0.1:0").await.unwrap().client()
}

fn config_map(number: usize) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(format!("map-{number}")), ..ObjectMeta::default() },
        data: Some([("fill".to_owned(), format!("{number} {}", "x".repeat(OBJECT_BYTES)))].into()),
        ..ConfigMap::default()
    }
}

/// Makes one, if there is room, and remembers whether there was.
async fn make(client: &Client, number: usize, kept: &mut BTreeMap<String, bool>) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps.create(&PostParams::default(), &config_map(number)).await;
    kept.insert(format!("map-{number}"), made.is_ok());
    made.map(|_| ())
}

/// Writes until the disk is full, and some more.
async fn fill(client: &Client, kept: &mut BTreeMap<String, bool>) {
    let mut refused = 0;
    for number in 0..MOST {
        let Err(error) = make(client, number, kept).await else { continue };
        let kube::Error::Api(status) = error else { panic!("{error}") };
        assert_eq!((status.code, status.reason.as_str()), (500, "InternalError"), "{status:?}");
        assert!(status.message.contains("No space left on device"), "{status:?}");
        refused += 1;
    }
    assert!(refused >= REFUSED, "{refused} of {MOST} were refused");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let there = maps.list(&ListParams::default()).await.unwrap().items.len();
    assert!(there >= MOST - refused, "what was made can be read");
}

/// Writes again, now that there is room.
async fn go_on(client: &Client, kept: &mut BTreeMap<String, bool>) {
    let begun = Instant::now();
    let mut number = MOST;
    while make(client, number, kept).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "it does not go on");
        tokio::time::sleep(Duration::from_millis(50)).await;
        number += 1;
    }
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.delete("map-0", &DeleteParams::default()).await.unwrap();
    kept.remove("map-0");
}

async fn ready(client: &Client) -> String {
    client.request_text(http::Request::get("/readyz").body(Vec::new()).unwrap()).await.unwrap()
}

/// What was acknowledged is there when the folder is opened again. The rest may be, whole.
async fn check(disk: &Path, kept: &BTreeMap<String, bool>) {
    let store = Store::open(Some(&disk.join("store"))).unwrap();
    let client = server(&store).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let found = maps.list(&ListParams::default()).await.unwrap().items;
    let found: BTreeMap<String, ConfigMap> =
        found.into_iter().map(|map| (map.metadata.name.clone().unwrap(), map)).collect();
    for (name, _) in kept.iter().filter(|(_, was_kept)| **was_kept) {
        assert!(found.contains_key(name), "{name} is lost");
    }
    for (name, map) in &found {
        assert!(kept.contains_key(name), "{name} was deleted");
        let number = name.trim_start_matches("map-").parse().unwrap();
        assert_eq!(map.data, config_map(number).data, "{name}");
    }
    store.close().await;
}
