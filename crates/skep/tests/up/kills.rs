//! `kill -9` at any moment, of any of its processes, again and again on the same data: no process is left, nothing that
//! was acknowledged is lost, and the next start goes on.
//!
//! `SKEP_KILL_SEED` chooses the moments; a failure names the seed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use skep_conformance::processes::{Family, inner, marked};
use tokio::time::timeout;

use super::machine::{Machine, connect, end_of, eventually};
use super::start::Start;

/// Kills come at most so late after a start, in milliseconds; about half of them before all pods run again.
const LATEST: u64 = 3000;
/// What the server has acknowledged.
#[derive(Debug, Default)]
struct Acknowledged {
    maps: BTreeSet<String>,
    pods: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

/// Numbers without any pattern that matters.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn pod(name: &str, mark: &Path) -> serde_json::Value {
    // A daemon that has left its group and its session, beside the program itself.
    let script = "setsid sleep 1000 & exec sleep 1000";
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "kills"}}, "spec": {
        "terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "shell",
        "imagePullPolicy": "IfNotPresent", "args": [script], "env": [{"name": "MARK", "value": mark}]}]}})
}

/// Writes as soon as it can until the machine is gone: objects that stay, and pods that come and go.
async fn write(folder: &Path, round: u64, known: &Mutex<Acknowledged>) {
    let client = loop {
        match connect(folder).await {
            Some(client) => break client,
            None => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client);
    for number in 0.. {
        let name = format!("r{round}-n{number}");
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        if maps.create(&PostParams::default(), &map).await.is_err() {
            return;
        }
        known.lock().unwrap().maps.insert(name.clone());
        let is_full = known.lock().unwrap().pods.len() >= 5;
        if is_full {
            let oldest = known.lock().unwrap().pods.pop_first().unwrap();
            // Without an answer it may be there or not.
            if pods.delete(&oldest, &DeleteParams::default()).await.is_err() {
                return;
            }
            known.lock().unwrap().deleted.insert(oldest);
        } else {
            let pod = Patch::Apply(pod(&name, folder));
            match pods.patch(&name, &PatchParams::apply("test"), &pod).await {
                Ok(_) => drop(known.lock().unwrap().pods.insert(name)),
                // The default service account is made a moment after the server.
                Err(kube::Error::Api(_)) => {}
                Err(_) => return,
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Kills the process outside or the one that does the work, and waits until nothing of the machine is left.
async fn kill(folder: &Path, mut outer: Child, outside: bool) {
    // Some of its processes carry no mark.
    let family = Family::of(outer.id());
    let victim = inner(outer.id()).filter(|_| !outside).unwrap_or(outer.id()).to_string();
    // It may have ended just now.
    let _ = Command::new("kill").args(["-KILL", &victim]).stderr(Stdio::null()).status().unwrap();
    end_of(&mut outer).await;
    let mark = folder.display().to_string();
    eventually("nothing is left", || async {
        let (found, left) = (marked(&mark), family.left());
        if found.is_empty() && left.is_empty() { Ok(()) } else { Err(format!("{found:?} {left:?}")) }
    })
    .await;
}

/// Everything that was acknowledged is there, what was deleted is not, and all pods run.
async fn look(machine: &Machine, known: &Mutex<Acknowledged>) {
    let maps: Api<ConfigMap> = Api::default_namespaced(machine.client.clone());
    let found: BTreeSet<String> = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|map| map.metadata.name)
        .collect();
    let lost: Vec<String> = known.lock().unwrap().maps.difference(&found).cloned().collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    eventually("all pods run, and no others", || async {
        let all = machine.pods().list(&ListParams::default().labels("app=kills")).await.unwrap().items;
        let known = known.lock().unwrap();
        let name = |pod: &Pod| pod.metadata.name.clone().unwrap();
        let undead = all.iter().map(name).find(|name| known.deleted.contains(name));
        let runs = |wanted: &String| {
            all.iter().filter(|pod| name(pod) == *wanted).any(|pod| {
                let status = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
                status.is_some_and(|all| all.iter().all(|container| container.ready))
            })
        };
        let missing: Vec<_> = known.pods.iter().filter(|name| !runs(name)).collect();
        let good = undead.is_none() && missing.is_empty();
        if good { Ok(()) } else { Err(format!("deleted and there: {undead:?}; not running: {missing:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_machine_goes_on_where_it_was() {
    let Some(machine) = Machine::start_or_skip("a_killed_machine_goes_on_where_it_was").await else { return };
    let chosen = std::env::var("SKEP_KILL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = chosen.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs());
    println!("SKEP_KILL_SEED={seed}");
    let mut chance = Chance(seed);
    let known: Mutex<Acknowledged> = Mutex::default();
    let rounds = if std::env::var_os("SKEP_SOAK").is_some() { 50 } else { 5 };
    machine.signal("-KILL");
    let (_, mut folder) = machine.ended().await;
    let begun = Instant::now();
    for round in 1..=rounds {
        let moment = Duration::from_millis(chance.below(LATEST));
        let (place, child) = Start::on(folder).spawn();
        // Before it can be written to, nothing is acknowledged.
        let _ = timeout(moment, write(place.path(), round, &known)).await;
        kill(place.path(), child, chance.below(3) > 0).await;
        folder = place;
        let machine = Start::on(folder).now().await;
        look(&machine, &known).await;
        machine.signal("-KILL");
        folder = machine.ended().await.1;
    }
    let known = known.lock().unwrap();
    let (maps, pods, deleted) = (known.maps.len(), known.pods.len(), known.deleted.len());
    let seconds = begun.elapsed().as_secs_f64();
    println!("figure: {rounds} kills in {seconds:.0} s: {maps} objects, {pods} pods and {deleted} deletions kept");
}
