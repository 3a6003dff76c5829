//! How much the operator remembers of an MCPServer with its children: bytes that are asked for, counted, so that neither
//! the machine nor its load has a say in it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::alloc::System;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Resource as _};
use serde_json::{Value, json};
use skep_api::kind::Kind as _;
use skep_api::kinds::{MCPGroup, MCPRemoteProxy, MCPServer};
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::server::Server;
use skep_kube::store::Store;
use skep_operator::cluster::Cluster;
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NAMESPACE: &str = "ns";
/// The server whose objects are the pattern of all. Nothing else contains its name.
const PATTERN: &str = "specimen";
/// The objects of a server: itself, two ServiceAccounts, Role, RoleBinding, ConfigMap, Deployment, Service and two pods.
const OBJECTS: usize = 10;

/// So much may be remembered of one server.
const MOST_BYTES: usize = 3 * 1024;
/// So many pieces may that be: each costs some bytes more than it has.
const MOST_PIECES: usize = 26;

const FEW: usize = 50;
const MANY: usize = 350;

/// The items of each list of the API server, as text.
type Lists = HashMap<String, Vec<String>>;

#[test]
fn a_server_takes_little_memory() {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let lists = Arc::new(threads.block_on(Box::pin(learn())));
    drop(threads);
    assert_eq!(lists.values().map(Vec::len).sum::<usize>(), OBJECTS, "{:?}", lists.keys());

    let thread = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (few, many) = thread.block_on(async {
        // What the server of before leaves behind is gone by the end of the first one.
        remembered(&lists, FEW).await;
        (remembered(&lists, FEW).await, remembered(&lists, MANY).await)
    });
    let (bytes, pieces) = ((many.0 - few.0) / (MANY - FEW), (many.1 - few.1) / (MANY - FEW));
    println!("an MCPServer with its children and pods takes {bytes} bytes in {pieces} pieces");
    assert!(pieces >= OBJECTS, "{pieces} pieces: not all objects are remembered");
    assert!(bytes <= MOST_BYTES, "{bytes} bytes, and {MOST_BYTES} are allowed");
    assert!(pieces <= MOST_PIECES, "{pieces} pieces, and {MOST_PIECES} are allowed");
}

/// Lets an operator make the objects of one server.
async fn learn() -> Lists {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    let client = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap().client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for entry in skep_api::crd::ALL {
        let (name, params) = (entry.definition.crd_name(), PatchParams::apply("test"));
        definitions.patch(&name, &params, &Patch::Apply(entry.document())).await.unwrap();
        await_condition(definitions.clone(), &name, conditions::is_crd_established()).await.unwrap();
    }
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();

    let settings = Settings { namespaces: vec![NAMESPACE.to_owned()], ..Settings::default() };
    let operator = Operator::start(client.clone(), &settings, Arc::default());
    operator.ready().await;
    let server = json!({"apiVersion": MCPServer::api_version(&()), "kind": "MCPServer", "metadata": {"name": PATTERN},
        "spec": {"image": "example.com/server:1", "transport": "streamable-http", "mcpPort": 8080, "args": ["serve"],
            "env": [{"name": "LOG_LEVEL", "value": "info"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}}}});
    let servers: Api<MCPServer> = Api::namespaced(client.clone(), NAMESPACE);
    servers.create(&PostParams::default(), &serde_json::from_value(server).unwrap()).await.unwrap();
    for _ in 0..3_000 {
        let server = servers.get(PATTERN).await.unwrap();
        if server.status.is_some_and(|status| status.phase.is_some() && !status.conditions.is_empty()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut lists = Lists::new();
    for path in paths() {
        let request = Request::get(&path).body(Vec::new()).unwrap();
        let list: Value = client.request(request).await.unwrap();
        lists.insert(path, list["items"].as_array().unwrap().iter().map(ToString::to_string).collect());
    }
    lists.insert(Pod::url_path(&(), Some(NAMESPACE)), vec![pod("proxy").to_string(), pod("backend").to_string()]);
    lists
}

/// A pod as a cluster makes it.
fn pod(role: &str) -> Value {
    let container = json!({"name": role, "ready": true, "restartCount": 0, "image": "example.com/server:1",
        "imageID": "i", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
    let mut labels = skep_api::names::labels::mcp_server(PATTERN);
    labels.insert("pod-template-hash".to_owned(), "7d9f8b6c54".to_owned());
    json!({"metadata": {"name": format!("{PATTERN}-{role}"), "namespace": NAMESPACE, "resourceVersion": "7",
            "uid": "0f8fad5b-d9cb-469f-a165-70867728950e", "labels": labels},
        "spec": {"containers": [{"name": role, "image": "example.com/server:1"}]},
        "status": {"phase": "Running", "containerStatuses": [container]}})
}

fn paths() -> [String; 8] {
    let place = Some(NAMESPACE);
    [
        MCPServer::url_path(&(), place),
        ConfigMap::url_path(&(), place),
        Deployment::url_path(&(), place),
        Role::url_path(&(), place),
        RoleBinding::url_path(&(), place),
        Service::url_path(&(), place),
        ServiceAccount::url_path(&(), place),
        StatefulSet::url_path(&(), place),
    ]
}

/// In how many bytes, and pieces, the objects of so many servers are remembered.
async fn remembered(lists: &Arc<Lists>, servers: usize) -> (usize, usize) {
    let held = || {
        let stats = ALLOCATOR.stats();
        (stats.bytes_allocated - stats.bytes_deallocated, stats.allocations - stats.deallocations)
    };
    // Controllers that need all of it, and of which none is woken by these objects: what waits is not what is remembered.
    let queues =
        BTreeMap::from([MCPGroup::DEFINITION.kind, MCPRemoteProxy::DEFINITION.kind].map(|kind| (kind, Arc::default())));
    let before = held();
    let (cluster, mut watches) = Cluster::watch(client(lists.clone(), servers), &[NAMESPACE.to_owned()], queues);
    tokio::time::timeout(Duration::from_mins(5), cluster.complete(true)).await.unwrap();
    let after = held();
    watches.shutdown().await;
    drop(cluster);
    (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1))
}

/// An API server at which nothing happens.
fn client(lists: Arc<Lists>, servers: usize) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let lists = lists.clone();
        async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                std::future::pending::<()>().await;
            }
            let patterns = lists.get(request.uri().path()).map(Vec::as_slice).unwrap_or_default();
            let items: Vec<String> =
                (0..servers).flat_map(|number| patterns.iter().map(move |item| vary(item, number))).collect();
            let list = format!("{{\"metadata\": {{\"resourceVersion\": \"1\"}}, \"items\": [{}]}}", items.join(","));
            Ok::<_, std::convert::Infallible>(Response::new(Body::from(list.into_bytes())))
        }
    });
    Client::new(service, NAMESPACE)
}

/// The same object of another server: another name, other identities, other checksums.
fn vary(item: &str, number: usize) -> String {
    let mut varied = String::new();
    for word in item.replace(PATTERN, &format!("server-{number}")).split_inclusive('"') {
        let digits = word.trim_end_matches('"');
        let is_number = digits.len() >= 32 && digits.chars().all(|digit| digit.is_ascii_hexdigit() || digit == '-');
        if is_number { varied.push_str(&scramble(word, number)) } else { varied.push_str(word) }
    }
    varied
}

/// Other digits in place of these; the same in every object of a server.
fn scramble(digits: &str, number: usize) -> String {
    let mut state = digits.bytes().fold(u64::try_from(number).unwrap(), |state, digit| step(state ^ u64::from(digit)));
    let scrambled = digits.chars().map(|digit| {
        state = step(state);
        if digit.is_ascii_hexdigit() {
            char::from_digit(u32::try_from(state >> 60).unwrap(), 16).unwrap()
        } else {
            digit
        }
    });
    scrambled.collect()
}

fn step(state: u64) -> u64 {
    state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f)
}
