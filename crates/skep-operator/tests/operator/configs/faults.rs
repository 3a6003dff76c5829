//! Random changes while every request of the operator may fail, wait or meet a conflict, and while the operator is
//! restarted at random: once the faults end, everything is as an operator that saw none of it would have made it.
//!
//! `SKEP_SOAK` is the number of sequences.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use skep_api::conditions::types;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};

use super::{Example, condition, settings, start};
use crate::cluster::{Fixture, Kind};
use crate::wire::{Faults, Random};

const SEQUENCES: u64 = 2;
const CHANGES: usize = 40;
const CONFIGS: [&str; 2] = ["a", "b"];
const SERVERS: [&str; 3] = ["x", "y", "z"];
const FOREIGN: &str = "Foreign";

pub fn trials(kind: Kind) -> Vec<Trial> {
    let sequences = std::env::var("SKEP_SOAK").ok().map_or(SEQUENCES, |count| count.parse().unwrap());
    let trial = |seed| {
        crate::trial(kind, &format!("{}::seed_{seed}", module_path!()), move |fixture| {
            faults_leave_no_trace(fixture, seed)
        })
    };
    (1..=sequences).map(trial).collect()
}

async fn faults_leave_no_trace(fixture: Fixture, seed: u64) {
    let mut random = Random(seed);
    let faults = Faults::seeded(seed);
    let mut operator = fixture.operator_with(settings(), faults.clone()).await;
    let mut marked = Vec::new();
    for _ in 0..CHANGES {
        match random.below(12) {
            0..=5 => marked.extend(change_some_config(&fixture, &mut random).await),
            6..=9 => change_some_server(&fixture, &mut random).await,
            10 => forgive(fixture.api::<MCPServer>().delete(random.pick(&SERVERS), &DeleteParams::default()).await),
            _ => {
                drop(operator);
                operator = fixture.operator_with(settings(), faults.clone()).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(u64::try_from(random.below(30)).unwrap())).await;
    }
    faults.end();

    let twin = fixture.sibling(&format!("{}-twin", fixture.namespace)).await;
    for server in fixture.api::<MCPServer>().list(&ListParams::default()).await.unwrap() {
        twin.create::<MCPServer>(&server.name_any(), json!(server.spec)).await;
    }
    let _untroubled = start(&twin).await;
    copy_configs(&fixture, &twin).await;
    let mut last = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..3_000 {
        last = (seen(&fixture).await, seen(&twin).await);
        if last.0 == last.1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(last.0, last.1, "seed {seed}");
    for (uid, was) in marked {
        let now = found(&fixture, &was).await.filter(|now| now["metadata"]["uid"] == uid);
        let kept = |object: Value| {
            object["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(|one| one["type"] == FOREIGN))
        };
        assert!(now.is_none_or(kept), "seed {seed}: {was} has lost what somebody else said about it");
    }
}

/// One change of one config. Whoever said something about it is told as its uid and path.
async fn change_some_config(fixture: &Fixture, random: &mut Random) -> Option<(Value, String)> {
    match random.below(6) {
        0 => change_config::<MCPAuthzConfig>(fixture, random).await,
        1 => change_config::<MCPExternalAuthConfig>(fixture, random).await,
        2 => change_config::<MCPOIDCConfig>(fixture, random).await,
        3 => change_config::<MCPTelemetryConfig>(fixture, random).await,
        4 => change_config::<MCPToolConfig>(fixture, random).await,
        _ => change_config::<MCPWebhookConfig>(fixture, random).await,
    }
}

async fn change_config<K: Example>(fixture: &Fixture, random: &mut Random) -> Option<(Value, String)> {
    let name = random.pick(&CONFIGS);
    let spec = match K::bad() {
        Some(bad) if random.below(3) == 0 => bad,
        _ => K::good(random.below(3)),
    };
    let api = fixture.api::<K>();
    match random.below(6) {
        0 => forgive(api.delete(name, &DeleteParams::default()).await),
        1 => return mark::<K>(fixture, name).await,
        2..=3 => {
            forgive(api.patch(name, &PatchParams::default(), &Patch::Merge(&json!({"spec": spec}))).await);
        }
        _ => {
            let object: K = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
            forgive(api.create(&PostParams::default(), &object).await);
        }
    }
    None
}

/// Says something about a config that is none of the operator's business.
async fn mark<K: Example>(fixture: &Fixture, name: &str) -> Option<(Value, String)> {
    loop {
        let object = fixture.api::<K>().get_opt(name).await.unwrap()?;
        let mut conditions = json!(object.status().map(|status| status.conditions.clone()).unwrap_or_default());
        if condition(&object, FOREIGN).is_none() {
            let foreign = json!({"type": FOREIGN, "status": "True", "reason": "Because", "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            conditions.as_array_mut().unwrap().push(foreign);
        }
        let patch =
            json!({"metadata": {"resourceVersion": object.resource_version()}, "status": {"conditions": conditions}});
        let written = fixture.api::<K>().patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        match written {
            Ok(marked) => return Some((json!(marked.uid()), fixture.path_of::<K>(name))),
            Err(error) => forgive::<K>(Err(error)),
        }
    }
}

async fn change_some_server(fixture: &Fixture, random: &mut Random) {
    fn reference<K: Example>(random: &mut Random) -> Value {
        if random.below(2) == 0 { Value::Null } else { K::reference(random.pick(&CONFIGS)) }
    }
    let name = random.pick(&SERVERS);
    let spec = json!({
        "image": "i",
        MCPAuthzConfig::MEMBER: reference::<MCPAuthzConfig>(random),
        MCPExternalAuthConfig::MEMBER: reference::<MCPExternalAuthConfig>(random),
        MCPOIDCConfig::MEMBER: reference::<MCPOIDCConfig>(random),
        MCPTelemetryConfig::MEMBER: reference::<MCPTelemetryConfig>(random),
        MCPToolConfig::MEMBER: reference::<MCPToolConfig>(random),
        MCPWebhookConfig::MEMBER: reference::<MCPWebhookConfig>(random),
    });
    let api = fixture.api::<MCPServer>();
    if api.get_opt(name).await.unwrap().is_some() {
        forgive(api.patch(name, &PatchParams::default(), &Patch::Merge(&json!({"spec": spec}))).await);
    } else {
        fixture.create::<MCPServer>(name, spec).await;
    }
}

/// A change may come too late or too early, nothing else.
fn forgive<T>(done: kube::Result<T>) {
    match done {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
        Err(error) => panic!("{error}"),
    }
}

async fn copy_configs(from: &Fixture, to: &Fixture) {
    async fn copy<K: Example>(from: &Fixture, to: &Fixture) {
        for object in from.api::<K>().list(&ListParams::default()).await.unwrap() {
            let name = object.name_any();
            to.create::<K>(&name, json!(object.spec())).await;
            to.until::<K>(&name, "judged", |object| condition(object, types::VALID).is_some()).await;
            if object.meta().deletion_timestamp.is_some() {
                to.delete::<K>(&name).await;
            }
        }
    }
    copy::<MCPAuthzConfig>(from, to).await;
    copy::<MCPExternalAuthConfig>(from, to).await;
    copy::<MCPOIDCConfig>(from, to).await;
    copy::<MCPTelemetryConfig>(from, to).await;
    copy::<MCPToolConfig>(from, to).await;
    copy::<MCPWebhookConfig>(from, to).await;
}

/// Every config of a namespace, as far as it does not depend on what it was before.
async fn seen(fixture: &Fixture) -> BTreeMap<String, Value> {
    async fn add<K: Example>(fixture: &Fixture, all: &mut BTreeMap<String, Value>) {
        for object in fixture.api::<K>().list(&ListParams::default()).await.unwrap() {
            let is_deleting = object.meta().deletion_timestamp.is_some();
            let status = object.status().cloned().unwrap_or_default();
            // What is said about a spec no longer matters when the object is to go; and the hash is that of the last
            // valid spec, which another history does not have.
            let is_valid = super::is_valid(&object) && !is_deleting;
            let mut conditions: Vec<Value> = Vec::new();
            for stated in &status.conditions {
                let is_stale = is_deleting && stated.type_ != types::DELETION_BLOCKED;
                if stated.type_ != FOREIGN && !is_stale {
                    let current = stated.observed_generation == object.meta().generation;
                    conditions.push(json!([stated.type_, stated.status, stated.reason, stated.message, current]));
                }
            }
            conditions.sort_by_key(ToString::to_string);
            let told = json!({
                "deleting": is_deleting,
                "finalizers": object.finalizers(),
                "conditions": conditions,
                "hash": status.config_hash.filter(|_| is_valid),
                "current": is_valid && status.observed_generation == object.meta().generation,
                "users": status.referencing_workloads,
                "count": status.reference_count,
            });
            all.insert(format!("{} {}", K::DEFINITION.kind, object.name_any()), told);
        }
    }
    let mut all = BTreeMap::new();
    add::<MCPAuthzConfig>(fixture, &mut all).await;
    add::<MCPExternalAuthConfig>(fixture, &mut all).await;
    add::<MCPOIDCConfig>(fixture, &mut all).await;
    add::<MCPTelemetryConfig>(fixture, &mut all).await;
    add::<MCPToolConfig>(fixture, &mut all).await;
    add::<MCPWebhookConfig>(fixture, &mut all).await;
    all
}

async fn found(fixture: &Fixture, path: &str) -> Option<Value> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    fixture.client.request(request).await.ok()
}
