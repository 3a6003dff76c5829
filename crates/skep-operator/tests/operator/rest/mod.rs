//! At rest nothing is written: workloads with every combination of options, children to which others have added labels,
//! annotations and containers, and minutes in which everything is looked at again and again.

mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use skep_api::conditions::{self, types};
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_conformance::changes::{child_kinds, is_ours, own_kinds, run_backend};
use skep_operator::cluster::OwnKind;
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;

use self::workloads::{Samples, settings};
use crate::cluster::{Fixture, Kind, passes};
use crate::readiness::{Script, run_pods};
use crate::wire::{Faults, Record};

/// How many MCPServers and MCPRemoteProxies there are, in the long form and in the short one: each option alone at least.
const WORKLOADS: ((usize, usize), (usize, usize)) = ((200, 100), (30, 28));
/// How many of the servers run.
const RUNNING: usize = 8;
/// A server whose backend has never come is looked at every ten seconds: so often in ten minutes, and in one.
const ROUNDS: (usize, usize) = (60, 6);

pub fn trials(kind: Kind) -> Vec<Trial> {
    vec![crate::trial(kind, "rest::looking_again_writes_nothing", looking_again_writes_nothing)]
}

async fn looking_again_writes_nothing(fixture: Fixture) {
    let ((servers, proxies), rounds) = if crate::is_soak() { (WORKLOADS.0, ROUNDS.0) } else { (WORKLOADS.1, ROUNDS.1) };
    let samples = Samples::new(servers, proxies);
    samples.create_what_is_named(&fixture).await;
    let handshake = Script::new(Ok(3));
    let settings = Settings { proxy: settings(), handshake: Some(handshake), ..Settings::default() };
    let (operator, record) = fixture.operator_with(settings.clone(), Faults::none()).await;
    samples.create(&fixture).await;
    every_option_is_in_use(&fixture, &samples).await;
    let running = start_some(&fixture, &samples).await;
    disturb(&fixture).await;
    verify(&fixture, &running).await;
    fixture.quiet(&record).await;
    drop(operator);
    // An operator that has just started finds nothing to do either.
    let (operator, record) = fixture.operator_with(settings, Faults::none()).await;
    let objects = objects(&fixture).await;
    for _ in 0..rounds {
        look_again(&fixture, &operator, &objects).await;
    }
    let passes: u64 = objects.iter().map(|(kind, _)| passes(&operator, kind)).sum();
    let verbs = record.verbs();
    println!("figure: {servers} servers and {proxies} proxies at rest: {passes} passes, requests {verbs:?}");
    let reads = BTreeSet::from(["get", "list", "watch"]);
    assert!(verbs.keys().all(|verb| reads.contains(verb)), "{verbs:?}: {:#?}", record.writes());
    a_difference_is_seen(&fixture, &record).await;
}

/// Waits until the workloads are what they will be. Some combinations make no sense and are refused; every option is in
/// one that is not.
async fn every_option_is_in_use(fixture: &Fixture, samples: &Samples) {
    let (mut used, mut all, mut refused) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (sample, options) in &samples.all {
        let status = if sample.remote {
            json!(fixture.until::<MCPRemoteProxy>(&sample.name, "looked at", is_looked_at).await.status)
        } else {
            json!(fixture.until::<MCPServer>(&sample.name, "looked at", is_looked_at).await.status)
        };
        let named = options.iter().map(|option| (sample.remote, *option));
        all.extend(named.clone());
        if status["url"].is_string() {
            used.extend(named);
        } else {
            let verdict = status["conditions"].as_array().into_iter().flatten().find(|found| found["type"] == "Ready");
            refused.extend(verdict.map(|verdict| verdict["message"].to_string()));
        }
    }
    let unused: Vec<_> = all.difference(&used).collect();
    assert!(unused.is_empty(), "no workload with these is served: {unused:?}; what is said: {refused:#?}");
}

/// Gives the first servers that can run a backend, as their proxies would, and waits until it is adopted. These are their
/// names.
async fn start_some<'a>(fixture: &Fixture, samples: &'a Samples) -> Vec<&'a str> {
    let mut started = Vec::new();
    for (sample, _) in samples.all.iter().filter(|(sample, _)| !sample.remote) {
        let proxy = fixture.maybe_child::<Deployment>(&sample.name).await.unwrap_or_default();
        if proxy["spec"]["replicas"].as_u64().unwrap_or_default() == 0 || started.len() == RUNNING {
            continue;
        }
        run_backend(&fixture.place(), &sample.name).await.unwrap();
        let is_adopted = |set: &Value| set["metadata"]["ownerReferences"][0]["kind"] == "MCPServer";
        fixture.until_child::<StatefulSet>(&sample.name, "adopted", is_adopted).await;
        started.push(sample.name.as_str());
    }
    assert_eq!(started.len(), RUNNING);
    started
}

/// Says that pods of these servers run until they are ready and verified, in their last version.
async fn verify(fixture: &Fixture, names: &[&str]) {
    for name in names {
        let is_verified = async || {
            run_pods(fixture, name).await;
            let server = fixture.api::<MCPServer>().get(name).await.unwrap();
            let deployment = fixture.child::<Deployment>(name).await;
            let is_replaced = deployment["status"]["updatedReplicas"] != deployment["spec"]["replicas"]
                || deployment["status"]["replicas"] != deployment["spec"]["replicas"];
            let status = server.status.unwrap_or_default();
            let is_ready =
                [types::READY, types::VERIFIED].iter().all(|type_| conditions::is_true(&status.conditions, type_));
            (is_ready && !is_replaced).then_some(())
        };
        fixture.eventually(&format!("server {name}, verified"), is_verified).await;
    }
}

fn is_looked_at<K: OwnKind>(object: &K) -> bool {
    let seen = json!(object.status())["observedGeneration"].as_i64();
    seen.is_some() && seen == object.meta().generation
}

/// What others add to the children of workloads.
async fn disturb(fixture: &Fixture) {
    let params = PatchParams { field_manager: Some("somebody-else".to_owned()), ..PatchParams::default() };
    let words = json!({"metadata": {"labels": {"foreign": "label"}, "annotations": {"foreign": "annotation"}}});
    let mut disturbed: BTreeMap<String, usize> = BTreeMap::new();
    for kind in child_kinds() {
        let api = fixture.objects(&kind);
        for child in api.list(&ListParams::default()).await.unwrap().items.iter().filter(|child| is_ours(child)) {
            api.patch(&child.name_any(), &params, &Patch::Merge(&words)).await.unwrap();
            *disturbed.entry(kind.kind.clone()).or_default() += 1;
        }
    }
    assert_eq!(disturbed.len(), child_kinds().len(), "{disturbed:?}");
    let api: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    for deployment in api.list(&ListParams::default()).await.unwrap() {
        let containers = json!([{"name": "injected", "image": "mesh", "env": [{"name": "A", "value": "b"}]}]);
        let sidecar = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {"template": {"metadata": {"annotations": {"mesh": "on"}}, "spec": {"containers": containers}}}});
        let params = PatchParams::apply("mesh").force();
        api.patch(&deployment.name_any(), &params, &Patch::Apply(&sidecar)).await.unwrap();
    }
}

/// How many objects each controller has to look at.
async fn objects(fixture: &Fixture) -> Vec<(String, u64)> {
    let mut counts = Vec::new();
    for kind in own_kinds() {
        let found = fixture.objects(&kind).list(&ListParams::default()).await.unwrap();
        counts.push((kind.kind, u64::try_from(found.items.len()).unwrap()));
    }
    counts
}

/// Has every controller look at everything once, and waits until it has.
async fn look_again(fixture: &Fixture, operator: &Operator, objects: &[(String, u64)]) {
    let wanted: Vec<(&str, u64)> =
        objects.iter().map(|(kind, count)| (kind.as_str(), passes(operator, kind) + count)).collect();
    operator.resync();
    let done = async || wanted.iter().all(|(kind, wanted)| passes(operator, kind) >= *wanted).then_some(());
    fixture.eventually("another look at everything", done).await;
}

/// What is counted would have been counted: a change of something that is ours is undone.
async fn a_difference_is_seen(fixture: &Fixture, record: &Record) {
    let before = record.writes().len();
    let name = format!("mcp-{}-proxy", workloads::FIRST);
    let changed = json!({"metadata": {"labels": {"toolhive-name": "somebody"}}});
    fixture.patch::<Service>(&name, changed).await;
    let is_back = |service: &Value| service["metadata"]["labels"]["toolhive-name"] == workloads::FIRST;
    fixture.until_child::<Service>(&name, "as it was", is_back).await;
    fixture.quiet(record).await;
    assert_eq!(record.writes().len(), before + 1);
}
