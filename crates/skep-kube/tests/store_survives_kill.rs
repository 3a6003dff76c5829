//! Every acknowledged write survives `kill -9`.
//!
//! The test starts itself again as a process that writes and says what was acknowledged, kills it at a random moment,
//! and looks at what is left. Several times on the same folder, so that repairs of repairs are covered too.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use skep_kube::store::{Change, Content, Key, Labels, Record, Selection, Store};

const FOLDER: &str = "SKEP_TEST_STORE_FOLDER";
const RESOURCE: &str = "/configmaps";
const ROUNDS: usize = 6;
const WRITERS: usize = 4;
/// How long the load runs before it is killed, at most.
const LONGEST_LOAD_MILLISECONDS: u64 = 500;
const OBJECT_BYTES: usize = 3000;

/// What happens to every object, one step after the other: created, updated, and every fifth one deleted.
fn steps(number: usize) -> usize {
    if number.is_multiple_of(5) { 3 } else { 2 }
}

fn object(step: usize) -> String {
    format!("{{\"step\":{step},\"fill\":\"{}\"}}", "x".repeat(OBJECT_BYTES))
}

/// The step that an object which was created is at.
fn step_of(record: Option<&Record>) -> usize {
    let Some(record) = record else { return 3 };
    let bytes = record.object.bytes();
    let text = std::str::from_utf8(&bytes).unwrap();
    (1..=2).find(|step| text == object(*step)).expect("a stored object is one that was written")
}

async fn apply_step(store: &Store, key: &Key, step: usize, revision: u64) -> u64 {
    let content = Content { object: object(step).as_str().into(), labels: Labels::default() };
    let change = match step {
        1 => Change::Create { key: key.clone(), content },
        2 => Change::Update { key: key.clone(), expected: revision, content },
        _ => Change::Delete { key: key.clone(), expected: revision },
    };
    store.commit(change).await.unwrap().revision
}

/// The process that is killed. Does nothing in an ordinary test run.
#[tokio::test]
async fn load() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = Store::open(Some(Path::new(&folder))).unwrap();
    let round = store.revision();
    let writers = (0..WRITERS).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let key = Key::new(RESOURCE, "default", format!("{round}-{writer}-{number}"));
                let mut revision = 0;
                for step in 1..=steps(number) {
                    revision = apply_step(&store, &key, step, revision).await;
                    println!("acknowledged {} {number} {step} {revision}", key.name);
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

/// What the killed process said about an object.
#[derive(Debug, Clone, Copy)]
struct Acknowledged {
    number: usize,
    step: usize,
    revision: u64,
}

fn run_load_and_kill(folder: &Path, after: Duration) -> HashMap<String, Acknowledged> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "load", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    let (first, begun) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = HashMap::new();
        for line in BufReader::new(output).lines() {
            let line = line.unwrap();
            // Lines of the test runner are on the same stream, and the last line may be cut.
            let Some((_, rest)) = line.split_once("acknowledged ") else { continue };
            let fields: Vec<&str> = rest.split(' ').collect();
            let [name, number, step, revision] = fields[..] else { continue };
            let (Ok(number), Ok(step), Ok(revision)) = (number.parse(), step.parse(), revision.parse()) else {
                continue;
            };
            acknowledged.insert(name.to_owned(), Acknowledged { number, step, revision });
            let _ = first.send(());
        }
        acknowledged
    });
    begun.recv_timeout(Duration::from_mins(1)).expect("the load begins");
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[tokio::test]
async fn no_acknowledged_write_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = HashMap::new();
    for round in 0..ROUNDS {
        let after = Duration::from_millis(RandomState::new().hash_one(round) % LONGEST_LOAD_MILLISECONDS);
        let killed = run_load_and_kill(folder.path(), after);
        let writes = killed.len();
        acknowledged.extend(killed);
        // Every other time the next process finds what the last one left.
        if round % 2 == 0 {
            continue;
        }
        let start = Instant::now();
        let store = Store::open(Some(folder.path())).unwrap();
        let took = start.elapsed();
        let objects = store.list(&Selection::all(RESOURCE)).records.len();
        println!("killed after {after:?}: {writes} keys acknowledged; reopened with {objects} objects in {took:?}");

        let mut ahead = 0;
        for (name, known) in &acknowledged {
            let record = store.get(&Key::new(RESOURCE, "default", name.as_str()));
            let found = step_of(record.as_deref());
            assert!(known.step <= found && found <= steps(known.number), "{name}: {known:?}, found step {found}");
            assert!(found <= known.step + 1, "{name}: {known:?}, found step {found}");
            if let (Some(record), true) = (record, found == known.step) {
                assert_eq!(record.revision, known.revision, "{name}");
            }
            ahead += usize::from(found > known.step);
            assert!(store.revision() >= known.revision);
        }
        assert!(ahead <= WRITERS * (round + 1), "{ahead} objects are further than anyone asked for");
        store.close().await;
    }
}
