//! A start that is refused names what is wrong and leaves the folder exactly as it was, the times of its files included.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::load::{config_map, config_maps, start};

/// A folder whose server was killed, so that there would be something to repair, too.
async fn killed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path()).await;
    let maps = config_maps(&server).await;
    for number in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("map-{number}"), "1")).await.unwrap();
    }
    let service = json!({ "metadata": { "name": "web" }, "spec": { "ports": [{ "port": 80 }] } });
    let services: Api<Service> = Api::default_namespaced(server.admin().await.unwrap());
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What can be seen of a file or folder: bytes, mode, and when it was changed.
type Seen = (Option<Vec<u8>>, u32, (i64, i64));

fn seen(folder: &Path, all: &mut BTreeMap<PathBuf, Seen>) {
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        let found = fs::metadata(&path).unwrap();
        if found.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let bytes = found.is_file().then(|| fs::read(&path).unwrap());
        all.insert(path, (bytes, found.mode(), (found.mtime(), found.mtime_nsec())));
    }
}

/// Starts the server on the folder, which must fail, and returns what it says.
fn refused(data: &Path, arguments: &[&str]) -> String {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    seen(data, &mut before);
    let output = Command::new("timeout")
        .args(["60", env!("CARGO_BIN_EXE_skep"), "api-server", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .args(arguments)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    seen(data, &mut after);
    let names = |all: &BTreeMap<PathBuf, Seen>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "{told}");
    for (path, was) in &before {
        assert!(after[path] == *was, "{} was touched: {told}", path.display());
    }
    told
}

/// Changes a byte in every page of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    for page in bytes.chunks_mut(4096).skip(1) {
        if let Some(byte) = page.iter_mut().find(|byte| **byte != 0) {
            *byte ^= 0x55;
        }
    }
    fs::write(path, bytes).unwrap();
}

type Damage = fn(&Path);

/// What is done to the folder, and what is said of it.
const DAMAGES: [(Damage, &str); 15] = [
    (|data| fs::write(data.join("pki/ca.crt"), "junk").unwrap(), "pki/ca.crt: not a certificate in PEM form"),
    (|data| fs::write(data.join("pki/ca.key"), "junk").unwrap(), "pki/ca.key: not a private key in PEM form"),
    (|data| fs::remove_file(data.join("pki/ca.key")).unwrap(), "pki/ca.key; put it back"),
    (|data| fs::write(data.join("pki/server.crt"), "").unwrap(), "pki/server.crt: not a certificate"),
    (|data| fs::write(data.join("pki/server.key"), "junk").unwrap(), "pki/server.key: not the key of"),
    (|data| fs::write(data.join("pki/admin.crt"), "junk").unwrap(), "pki/admin.crt: not a certificate"),
    (|data| fs::write(data.join("pki/admin.key"), "junk").unwrap(), "pki/admin.key: not the key of"),
    (
        |data| fs::write(data.join("pki/service-accounts.key"), "junk").unwrap(),
        "service-accounts.key: not a private key",
    ),
    (|data| fs::write(data.join("kubeconfig"), "clusters: 5").unwrap(), "cannot be read as a kubeconfig"),
    (|data| fs::remove_dir_all(data.join("pki")).unwrap(), "kubeconfig is not from this server's authority"),
    (|data| fs::write(data.join("store/format"), "skep-kube store 99\n").unwrap(), "was written by a newer version"),
    (|data| flip(&data.join("store/store.redb")), "store/store.redb is damaged: "),
    (|data| fs::remove_file(data.join("store/store.redb")).unwrap(), "store.redb is missing"),
    (|data| fs::remove_dir_all(data.join("store")).unwrap(), "store is missing, and "),
    (
        |data| {
            fs::remove_dir_all(data.join("store")).unwrap();
            fs::create_dir(data.join("store")).unwrap();
        },
        "store is missing, and ",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_refused_leaves_everything_as_it_was() {
    let folder = killed().await;
    let data = folder.path().join("data");
    for (number, (damage, expected)) in DAMAGES.into_iter().enumerate() {
        let copied = folder.path().join(number.to_string());
        copy(&data, &copied);
        damage(&copied);
        let told = refused(&copied, &[]);
        assert!(told.contains(expected), "{number}: not {expected}: {told}");
    }
    let told = refused(&data, &["--service-range", "10.55.0.0/16"]);
    assert!(told.contains("default/web"), "{told}");
    // What is left alone is served.
    let server = start(folder.path()).await;
    assert!(config_maps(&server).await.get("map-4").await.is_ok());
    let told = refused(&data, &[]);
    assert!(told.contains("is in use by another process"), "{told}");
}
