//! The rights of the operator: every operator of these tests has exactly those of the generated roles. A request that is
//! refused fails its test, and a rule of our own that nobody uses fails the last one.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use libtest_mimic::Trial;
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_api::kind::GROUP;
use skep_api::kinds::{MCPRemoteProxy, MCPServer, MCPToolConfig};
use skep_api::names::{annotations, operator as names};
use skep_operator::election::Candidate;
use skep_operator::manifests::{self, rules};
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, Kind};
use crate::deploy;
use crate::wire::{self, Faults, Sent};

/// Verb, API group and resource.
type Right = (String, String, String);

static USED: Mutex<BTreeSet<Right>> = Mutex::new(BTreeSet::new());
/// What was handed on to proxies. Nobody can give what they do not have.
static GRANTED: Mutex<BTreeSet<Right>> = Mutex::new(BTreeSet::new());
static REFUSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Where what the manager role has and Skep does not use is listed.
const LIST: &str = include_str!("../../../../docs/compatibility.md");
const HEADING: &str = "## Rights that are not used";

/// Notes which rights a request of an operator has needed.
pub fn note(sent: &Sent, status: StatusCode) {
    if status == StatusCode::FORBIDDEN {
        REFUSED.lock().push(format!("{} {}", sent.asked.verb, sent.path));
    }
    let asked = &sent.asked;
    let mut used = USED.lock();
    let mut note = |verb: &str, group: &str, resource: String| {
        used.insert((verb.to_owned(), group.to_owned(), resource));
    };
    note(asked.verb, &asked.group, asked.resource.clone());
    if status == StatusCode::CREATED {
        note("create", &asked.group, asked.resource.clone());
    }
    if asked.resource == "events" {
        // One that is told again is counted up.
        note("patch", &asked.group, asked.resource.clone());
    }
    // A cluster can ask for this right of whoever makes a child that blocks the deletion of its owner.
    for owner in sent.body["metadata"]["ownerReferences"].as_array().into_iter().flatten() {
        let definitions = skep_api::crd::ALL.iter().map(|entry| &entry.definition);
        if let Some(found) = definitions.clone().find(|definition| owner["kind"] == definition.kind) {
            note("update", GROUP, format!("{}/finalizers", found.plural));
        }
    }
    if asked.resource == "roles" {
        let rules = sent.body["rules"].as_array().into_iter().flatten();
        GRANTED.lock().extend(rules.flat_map(rights_of));
    }
}

/// The rights of a rule.
fn rights_of(rule: &Value) -> Vec<Right> {
    let texts = |member: &str| -> Vec<String> {
        rule[member].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut rights = Vec::new();
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            rights.extend(texts("verbs").into_iter().map(|verb| (verb, group.clone(), resource.clone())));
        }
    }
    rights
}

/// Fails when an operator for this namespace was refused something.
pub fn assert_none_was_missing(namespace: &str) {
    let place = format!("/namespaces/{namespace}");
    let refused: Vec<String> = REFUSED.lock().iter().filter(|path| path.contains(&place)).cloned().collect();
    assert!(refused.is_empty(), "the roles do not allow: {refused:#?}");
}

/// Who the operator for a namespace is.
pub fn user_of(namespace: &str) -> String {
    format!("operator-of-{namespace}")
}

/// Gives the operator for a namespace the rules of the roles there, and nothing anywhere else.
pub async fn grant(fixture: &Fixture) {
    let user = user_of(&fixture.namespace);
    let metadata = json!({"name": "operator", "namespace": fixture.namespace});
    bind(fixture, &user, "Role", &metadata).await;
    let path = format!("/apis/{GROUP}/v1beta1/namespaces/{}/mcpservers", fixture.namespace);
    until_allowed(fixture, &user, &path).await;
}

/// An operator that has the rules of the roles everywhere.
pub async fn everywhere(fixture: &Fixture) -> String {
    let user = format!("{}-and-of-all", user_of(&fixture.namespace));
    bind(fixture, &user, "ClusterRole", &json!({"name": user})).await;
    until_allowed(fixture, &user, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").await;
    user
}

async fn bind(fixture: &Fixture, user: &str, kind: &str, metadata: &Value) {
    let all: Vec<Value> = rules::MANAGER.iter().chain(rules::EXTRA).map(rules::Rule::document).collect();
    let api = "rbac.authorization.k8s.io";
    let version = format!("{api}/v1");
    write(&fixture.client, &json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": all})).await;
    let binding = json!({"apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": kind, "name": metadata["name"]},
        "subjects": [{"apiGroup": api, "kind": "User", "name": user}]});
    write(&fixture.client, &binding).await;
}

/// A server takes notice of roles a moment later.
async fn until_allowed(fixture: &Fixture, user: &str, path: &str) {
    fixture
        .eventually("the rights of an operator", async || {
            let request = http::Request::get(path).header("impersonate-user", user).body(Vec::new()).unwrap();
            fixture.client.request_text(request).await.ok()
        })
        .await;
}

async fn write(client: &Client, document: &Value) {
    let text = |member: &str| document[member].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    let api: Api<DynamicObject> = match document["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = document["metadata"]["name"].as_str().unwrap();
    api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(document)).await.unwrap();
}

/// Tests that come after all others, one after the other.
pub fn trials(is_whole: bool) -> Vec<Trial> {
    let mut trials: Vec<Trial> = [Kind::Ours, Kind::Real]
        .map(|kind| crate::trial(kind, "rights::one_operator_for_all_namespaces", one_operator_for_all_namespaces))
        .into();
    trials.extend(deploy::trials());
    if is_whole {
        trials.push(Trial::test("rights::every_rule_of_our_own_is_used", || {
            let used = USED.lock();
            let own: BTreeSet<Right> = rules::EXTRA.iter().flat_map(|rule| rights_of(&rule.document())).collect();
            let unused: Vec<&Right> = own.difference(&used).collect();
            assert!(unused.is_empty(), "rules::EXTRA has what nobody uses: {unused:#?}");
            Ok(())
        }));
        trials.push(Trial::test("rights::what_is_not_used_is_listed", || {
            let (listed, found) = (listed(), unused_lines());
            assert_eq!(listed, found, "docs/compatibility.md, {HEADING}, should read:\n{}", found.join("\n"));
            Ok(())
        }));
    }
    trials
}

/// What the manager role has and nobody uses, one line of a table for each resource.
fn unused_lines() -> Vec<String> {
    let (used, granted) = (USED.lock(), GRANTED.lock());
    let mut lines = Vec::new();
    for rule in rules::MANAGER {
        for resource in rule.resources {
            let is_unused = |verb: &&str| {
                if *resource == "*" {
                    return !used
                        .iter()
                        .any(|right| right.0 == **verb && right.1 == rule.group && is_unnamed(&right.2));
                }
                let right = ((*verb).to_owned(), rule.group.to_owned(), (*resource).to_owned());
                !used.contains(&right) && !granted.contains(&right)
            };
            let verbs: Vec<&str> = rule.verbs.iter().copied().filter(is_unused).collect();
            if !verbs.is_empty() {
                let group = if rule.group.is_empty() { "core" } else { rule.group };
                lines.push(format!("| {group} | {resource} | {} |", verbs.join(", ")));
            }
        }
    }
    lines
}

/// Whether only a rule for all resources covers this one.
fn is_unnamed(resource: &str) -> bool {
    !rules::MANAGER.iter().chain(rules::EXTRA).any(|rule| rule.resources.contains(&resource))
}

fn listed() -> Vec<String> {
    let section = LIST.split_once(HEADING).map(|(_, section)| section).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    rows.skip(1).map(str::to_owned).collect()
}

/// An operator with the service account of the manifests looks after everything that all the other tests have left, and
/// after this one.
async fn one_operator_for_all_namespaces(fixture: Fixture) {
    let other = fixture.sibling("one-operator-for-all-namespaces-b").await;
    for (_, documents) in manifests::files("0") {
        for document in documents.iter().filter(|document| document["kind"] != "Deployment") {
            write(&fixture.client, document).await;
        }
    }
    let namespace = names::DEFAULT_NAMESPACE;
    let user = format!("system:serviceaccount:{namespace}:{}", names::NAME);
    until_allowed(&fixture, &user, &format!("/apis/{GROUP}/v1beta1/mcpservers")).await;
    until_allowed(&fixture, &user, &format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")).await;
    let (client, record) = wire::client(fixture.client.clone(), &user, &fixture.namespace, Faults::none());
    let mut candidate = Candidate::stand(client.clone(), namespace, "all").await.unwrap();
    candidate.elected().await;
    let operator = Operator::start(client, &Settings::default(), Arc::default());
    for place in [&fixture, &other] {
        place.create::<MCPToolConfig>("t", json!({"toolsFilter": ["one"]})).await;
        let tools = json!({"name": "t"});
        place.create::<MCPServer>("s", json!({"image": "i", "toolConfigRef": tools})).await;
        let remote = json!({"remoteUrl": "https://mcp.example.com", "toolConfigRef": tools});
        place.create::<MCPRemoteProxy>("p", remote).await;
    }
    for place in [&fixture, &other] {
        place.until::<MCPRemoteProxy>("p", "settled", crate::remote_proxies::is_settled).await;
        place.until::<MCPServer>("s", "settled", crate::servers::is_settled).await;
        restart_at_once(place).await;
        place.delete::<MCPRemoteProxy>("p").await;
        place.delete::<MCPServer>("s").await;
        place.delete::<MCPToolConfig>("t").await;
        place.until_gone::<MCPServer>("s").await;
        place.until_gone::<MCPToolConfig>("t").await;
    }
    drop(operator);
    candidate.resign().await;
    let verbs = record.verbs();
    assert!(verbs["watch"] > 0 && verbs["patch"] > 0, "{verbs:?}");
    let refused = REFUSED.lock();
    assert!(refused.is_empty(), "the roles do not allow: {refused:#?}");
}

/// Has the pods of a proxy replaced at once.
async fn restart_at_once(fixture: &Fixture) {
    let pods: Api<Pod> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let proxies = ListParams::default().labels("app=mcpserver,toolhive-name=s");
    let names = async || -> BTreeSet<String> {
        let found = pods.list(&proxies).await.unwrap();
        found.items.into_iter().filter_map(|pod| pod.metadata.uid).collect()
    };
    let before = fixture.eventually("a pod", async || Some(names().await).filter(|found| !found.is_empty())).await;
    let ask = json!({annotations::RESTARTED_AT: "2026-02-03T04:05:06Z",
        annotations::RESTART_STRATEGY: annotations::RESTART_IMMEDIATE});
    fixture.merge::<MCPServer>("s", json!({"metadata": {"annotations": ask}})).await;
    fixture
        .eventually("other pods", async || {
            let now = names().await;
            (!now.is_empty() && now.is_disjoint(&before)).then_some(())
        })
        .await;
}
