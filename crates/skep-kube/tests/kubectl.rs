//! kubectl on our server prints what it prints on the real one: the scripts of `conformance/kubectl`.
//!
//! `tests/kubectl-not-yet.txt` lists the steps that do not agree yet. The test fails when one that is not listed
//! differs, and also when one that is listed agrees, so that the list can only shrink.
//!
//! `SCRIPTS=rollout` runs only scripts whose name has that text; `SHOW_KUBECTL=1` shows all differences;
//! `UPDATE_GOLDEN=1` writes the transcripts of the real cluster anew.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod kubectl {
    pub(crate) mod cluster;
}

use std::collections::{BTreeMap, BTreeSet};

use kubectl::cluster::Cluster;
use skep_conformance::kubectl::{Difference, Script, Transcript, compare, folder, golden, load, run_all, write_golden};

/// Scripts under way at once. Most of the time goes into the start of kubectl, so that more would only wait.
const AT_ONCE: usize = 4;
const NOT_YET: &str = include_str!("kubectl-not-yet.txt");

fn scripts() -> Vec<Script> {
    let mut scripts = load().unwrap();
    if let Ok(wanted) = std::env::var("SCRIPTS") {
        scripts.retain(|script| script.name.contains(&wanted));
    }
    scripts
}

async fn transcripts(cluster: &Cluster, scripts: Vec<Script>) -> Vec<Transcript> {
    run_all(&cluster.kubectl, scripts, AT_ONCE).await.unwrap()
}

fn differences(transcripts: &[Transcript]) -> Vec<Difference> {
    transcripts.iter().flat_map(|ours| compare(&golden(&ours.script).unwrap(), ours)).collect()
}

fn shown(differences: &[&Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The steps of the list, as `script step`, with the reason why they differ.
fn not_yet() -> BTreeMap<String, String> {
    let lines = NOT_YET.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").unwrap()).map(|(step, why)| (step.to_owned(), why.to_owned())).collect()
}

#[test]
fn every_script_has_a_golden_transcript_and_nothing_else_has() {
    let scripts = load().unwrap();
    for script in &scripts {
        let commands = golden(&script.name).unwrap().entries.len();
        assert_eq!(
            commands,
            script.steps.len(),
            "the golden transcript of {} has another number of steps",
            script.name
        );
    }
    let names: BTreeSet<String> = scripts.into_iter().map(|script| script.name).collect();
    for file in std::fs::read_dir(folder().join("golden")).unwrap() {
        let name = file.unwrap().path().file_stem().unwrap().display().to_string();
        assert!(names.contains(&name), "there is a golden transcript of {name}, but no script");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_prints_the_same_on_our_server() {
    let Some(cluster) = Cluster::ours_or_skip("kubectl_prints_the_same_on_our_server").await else { return };
    let mut differences = differences(&transcripts(&cluster, scripts()).await);
    let listed = not_yet();
    let step_of = |difference: &Difference| format!("{} {}", difference.script, difference.step);
    // Some steps watch what passes quickly, and a machine that is busy may miss it. What truly differs differs again.
    let missed: BTreeSet<String> =
        differences.iter().filter(|one| !listed.contains_key(&step_of(one))).map(|one| one.script.clone()).collect();
    if !missed.is_empty() {
        eprintln!("once more: {missed:?}");
        let again = scripts().into_iter().filter(|script| missed.contains(&script.name)).collect();
        let Some(cluster) = Cluster::ours_or_skip("kubectl_prints_the_same_on_our_server").await else { return };
        differences.retain(|difference| !missed.contains(&difference.script));
        differences.extend(self::differences(&transcripts(&cluster, again).await));
    }
    if std::env::var_os("SHOW_KUBECTL").is_some() {
        println!("{}", shown(&differences.iter().collect::<Vec<_>>()));
    }
    let unexpected: Vec<&Difference> = differences.iter().filter(|one| !listed.contains_key(&step_of(one))).collect();
    assert!(unexpected.is_empty(), "{} steps differ:\n{}", unexpected.len(), shown(&unexpected));
    if std::env::var_os("SCRIPTS").is_none() {
        let differing: BTreeSet<String> = differences.iter().map(step_of).collect();
        let agreeing: Vec<&String> = listed.keys().filter(|step| !differing.contains(*step)).collect();
        assert!(agreeing.is_empty(), "these agree now; take them off the list: {agreeing:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_golden_transcripts_are_true_on_a_real_cluster() {
    const TEST: &str = "the_golden_transcripts_are_true_on_a_real_cluster";
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    // It says something about the transcripts and nothing about our code, so it need not run every time.
    if !is_update && std::env::var_os("SKEP_SOAK").is_none() {
        skep_conformance::skip::skip(TEST, "long tier; set SKEP_SOAK=1 to run it");
        return;
    }
    let Some(cluster) = Cluster::real_or_skip(TEST).await else { return };
    let transcripts = transcripts(&cluster, scripts()).await;
    if is_update {
        for transcript in &transcripts {
            write_golden(transcript).unwrap();
        }
    }
    let differences = differences(&transcripts);
    assert!(differences.is_empty(), "{}", shown(&differences.iter().collect::<Vec<_>>()));
}
