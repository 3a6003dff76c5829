//! `skep operator` is killed at random moments while people change their objects, and started again: in the end everything
//! is as a process that lived through none of it makes it, without an orphan, and nothing that others wrote is lost.
//!
//! `SKEP_FAULT_SEQUENCES` is the number of sequences on our server, a fifth of them on a real one; `SKEP_FAULT_SEED` is
//! where they begin. `--test operator` of the operator does the same with requests that fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use skep_conformance::api_server::ApiServer;
use skep_conformance::changes::{Life, Place, Random, Twin};
use skep_conformance::control_plane::ControlPlane;
use skep_conformance::definitions;
use skep_conformance::process::Process;
use skep_kube::controllers::{self, Controllers};

const SKEP: &str = env!("CARGO_BIN_EXE_skep");
/// In a short run, on our server and on a real one.
const SEQUENCES: (u64, u64) = (2, 1);
/// The first of them: one in which Secrets change, too.
const FIRST: u64 = 3;
/// How many sequences of a long run are for the real server.
const SHARE_OF_REAL: u64 = 5;
const AT_A_TIME: usize = 3;
const CHANGES: usize = 30;
/// How often an operator is killed at least in one sequence.
const KILLS: u32 = 4;
/// What it says when it begins to work.
const AT_WORK: &str = "looking after";
/// Far more than a start takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn operators_that_are_killed_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start(Path::new(SKEP), folder.path()).await.unwrap();
    let client = server.admin().await.unwrap();
    // The server is one without controllers.
    tokio::spawn(controllers::run(server.admin().await.unwrap(), Controllers::all(), std::future::pending()));
    let cluster = Cluster { client, kubeconfig: server.admin_kubeconfig() };
    cluster.run("our server", sequences().unwrap_or(SEQUENCES.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_that_are_killed_leave_no_trace_on_a_real_control_plane() {
    let test = "operators_that_are_killed_leave_no_trace_on_a_real_control_plane";
    let Some(plane) = ControlPlane::start_or_skip(test).await else { return };
    let cluster = Cluster { client: plane.admin().await.unwrap(), kubeconfig: plane.admin_kubeconfig() };
    cluster.run("the real server", sequences().map_or(SEQUENCES.1, |all| all / SHARE_OF_REAL)).await;
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn sequences() -> Option<u64> {
    variable("SKEP_FAULT_SEQUENCES")
}

struct Cluster {
    client: Client,
    kubeconfig: PathBuf,
}

/// How often operators were killed, and how often while they were at work.
#[derive(Clone, Copy, Default)]
struct Kills {
    all: u32,
    at_work: u32,
}

impl Cluster {
    async fn run(&self, name: &str, sequences: u64) {
        definitions::install(&self.client, |document| document).await.unwrap();
        let first = variable("SKEP_FAULT_SEED").unwrap_or(FIRST);
        let begun = Instant::now();
        let all = futures::stream::iter(first..first + sequences).map(async |seed| {
            let outcome = Box::pin(self.sequence(seed)).await;
            outcome.with_context(|| format!("seed {seed} on {name}"))
        });
        let all: Vec<Kills> = all.buffer_unordered(AT_A_TIME).try_collect().await.unwrap();
        let kills = all.iter().map(|kills| kills.all).sum::<u32>();
        let at_work = all.iter().map(|kills| kills.at_work).sum::<u32>();
        let seconds = begun.elapsed().as_secs();
        println!("figure: {sequences} sequences on {name}, {kills} operators killed, {at_work} at work, {seconds} s");
        assert!(at_work > 0, "no operator was killed at work");
    }

    async fn place(&self, namespace: String) -> anyhow::Result<Place> {
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &object).await?;
        Ok(Place { client: self.client.clone(), namespace })
    }

    /// An operator of one namespace. Dropping it kills it.
    fn operator(&self, folder: &Path, namespace: &str) -> anyhow::Result<Process> {
        let kubeconfig = self.kubeconfig.display();
        let arguments = [
            format!("WATCH_NAMESPACE={namespace}"),
            SKEP.to_owned(),
            "operator".to_owned(),
            "--metrics-bind-address=0".to_owned(),
            "--health-probe-bind-address=0".to_owned(),
            format!("--kubeconfig={kubeconfig}"),
        ];
        Ok(Process::start("operator", Path::new("/usr/bin/env"), &arguments, folder)?)
    }

    async fn sequence(&self, seed: u64) -> anyhow::Result<Kills> {
        let folder = tempfile::tempdir()?;
        let place = self.place(format!("seed-{seed}")).await?;
        let namespace = place.namespace.clone();
        let mut life = Life::begin(place, seed).await?;
        let is_over = AtomicBool::new(false);
        let changes = async {
            let mut random = Random(seed);
            for _ in 0..CHANGES {
                life.go_on().await?;
                pause(&mut random, 120).await;
            }
            is_over.store(true, Ordering::SeqCst);
            life.end().await
        };
        let (lived, kills) = tokio::join!(changes, self.trouble(folder.path(), &namespace, seed, &is_over));
        lived?;
        let kills = kills?;
        let _operator = self.operator(folder.path(), &namespace)?;

        let twin = self.place(format!("seed-{seed}-twin")).await?;
        let (elsewhere, namespace) = (tempfile::tempdir()?, twin.namespace.clone());
        let twin = Twin::of(&life, twin).await?;
        let _untroubled = self.operator(elsewhere.path(), &namespace)?;
        twin.complete().await?;
        life.compare(&twin).await?;
        Ok(kills)
    }

    /// Starts an operator and kills it, again and again, until nothing changes any more.
    async fn trouble(&self, folder: &Path, namespace: &str, seed: u64, is_over: &AtomicBool) -> anyhow::Result<Kills> {
        let mut random = Random(seed.rotate_left(32));
        let mut kills = Kills::default();
        while !is_over.load(Ordering::SeqCst) || kills.all < KILLS {
            let mut operator = self.operator(folder, namespace)?;
            if !random.once_in(3) {
                until_at_work(&mut operator).await?;
            }
            pause(&mut random, 700).await;
            kills.at_work += u32::from(operator.output().contains(AT_WORK));
            tokio::task::spawn_blocking(move || drop(operator)).await?;
            kills.all += 1;
            pause(&mut random, 200).await;
        }
        Ok(kills)
    }
}

async fn until_at_work(operator: &mut Process) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !operator.output().contains(AT_WORK) {
        if let Some(last_words) = operator.last_words() {
            anyhow::bail!(last_words);
        }
        anyhow::ensure!(begun.elapsed() < PATIENCE, "it does not begin: {}", operator.output());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Some time below a limit in milliseconds.
async fn pause(random: &mut Random, limit: usize) {
    tokio::time::sleep(Duration::from_millis(u64::try_from(random.below(limit)).unwrap_or_default())).await;
}
