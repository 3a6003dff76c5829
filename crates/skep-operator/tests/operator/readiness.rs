//! Servers whose pods run: a test says so, since there is no node.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, FutureExt as _};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_api::conditions::{self, Condition, ConditionStatus, types};
use skep_api::kinds::mcp_server::MCPServerPhase;
use skep_api::kinds::{MCPOIDCConfig, MCPServer};
use skep_api::names::{annotations, labels};
use skep_conformance::changes::run_backend;
use skep_operator::handshake::{Handshake, Silence};
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;

use crate::cluster::{Fixture, passes, waiting};
use crate::configs::Example as _;
use crate::servers::settled;
use crate::trials;
use crate::wire::{Faults, Record};

trials![
    a_start_never_looks_like_a_failure,
    a_lost_backend_is_asked_for_once,
    a_server_is_verified_beside_everything_else,
    a_server_that_asks_who_calls_is_neither_verified_nor_not,
];

/// Says what a node says of pods that run.
pub async fn run_pods(fixture: &Fixture, name: &str) {
    let pods: Api<Pod> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let params = ListParams::default().labels(&labels::selector_text(&labels::mcp_server(name)));
    let found = async || Some(pods.list(&params).await.unwrap().items).filter(|found| !found.is_empty());
    for pod in fixture.eventually("pods of the proxy", found).await {
        let container = json!({"name": "toolhive", "ready": true, "image": "i", "imageID": "", "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
        let status = json!({"phase": "Running", "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": "True"}]});
        let patch = Patch::Merge(json!({"status": status}));
        match pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await {
            // It was replaced meanwhile.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            patched => drop(patched.unwrap()),
        }
    }
}

/// A server that is ready, with a backend.
async fn ready(fixture: &Fixture, name: &str) -> MCPServer {
    run_backend(&fixture.place(), name).await.unwrap();
    run_pods(fixture, name).await;
    fixture.until::<MCPServer>(name, "ready", |server| phase(server) == Some(MCPServerPhase::Ready)).await
}

fn phase(server: &MCPServer) -> Option<MCPServerPhase> {
    server.status.as_ref()?.phase
}

fn condition(server: &MCPServer, type_: &str) -> Option<Condition> {
    conditions::find(&server.status.as_ref()?.conditions, type_).cloned()
}

fn restarted(deployment: &Value) -> Value {
    deployment["spec"]["template"]["metadata"]["annotations"][annotations::RESTARTED_AT].clone()
}

async fn a_start_never_looks_like_a_failure(fixture: Fixture) {
    let (_operator, _record) = fixture.operator().await;
    let phases: Arc<Mutex<Vec<Option<MCPServerPhase>>>> = Arc::default();
    let seen = phases.clone();
    let mut versions =
        watcher(fixture.api::<MCPServer>(), watcher::Config::default()).default_backoff().applied_objects().boxed();
    let watching = tokio::spawn(async move {
        while let Ok(server) = versions.try_next().await.map(Option::unwrap) {
            seen.lock().push(phase(&server));
        }
    });
    // The controller of the config has not looked at it when the server appears.
    fixture.create::<MCPOIDCConfig>("o", MCPOIDCConfig::good(1)).await;
    fixture.create::<MCPServer>("s", json!({"image": "i", "oidcConfigRef": MCPOIDCConfig::reference("o")})).await;
    let server = ready(&fixture, "s").await;
    let verdict = condition(&server, types::READY).unwrap();
    assert_eq!((verdict.status, verdict.message.as_str()), (ConditionStatus::True, "MCP server is running"));
    assert_eq!(server.status.as_ref().unwrap().ready_replicas, Some(1));
    assert_eq!(condition(&server, types::VERIFIED), None, "nobody here speaks MCP");
    let is_last = async || (phases.lock().last() == Some(&Some(MCPServerPhase::Ready))).then_some(());
    fixture.eventually("the last version", is_last).await;
    watching.abort();
    let phases = phases.lock();
    assert!(phases.iter().all(|phase| *phase != Some(MCPServerPhase::Failed)), "{phases:?}");
}

async fn a_lost_backend_is_asked_for_once(fixture: Fixture) {
    let (operator, record) = fixture.operator().await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    settled(&fixture, "s").await;
    look(&fixture, &operator, &record).await;
    assert_eq!(restarted(&fixture.child::<Deployment>("s").await), Value::Null, "nothing has been up yet");
    ready(&fixture, "s").await;
    fixture.until_child::<Deployment>("s", "available", |found| found["status"]["availableReplicas"] == 1).await;

    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    sets.delete("s", &DeleteParams::background()).await.unwrap();
    let asked = |found: &Value| restarted(found).is_string();
    let first = restarted(&fixture.until_child::<Deployment>("s", "asked to start anew", asked).await);
    let pending = |server: &MCPServer| {
        let message = server.status.as_ref().and_then(|status| status.message.as_deref());
        message == Some("MCP server proxy is running; recreating missing workload StatefulSet")
    };
    let server = fixture.until::<MCPServer>("s", "without a backend", pending).await;
    assert_eq!(condition(&server, types::READY).unwrap().status, ConditionStatus::False);
    for _ in 0..3 {
        look(&fixture, &operator, &record).await;
    }
    assert_eq!(restarted(&fixture.child::<Deployment>("s").await), first);
    ready(&fixture, "s").await;
}

/// Has all servers looked at again.
async fn look(fixture: &Fixture, operator: &Operator, record: &Record) {
    let before = passes(operator, "MCPServer");
    operator.resync();
    fixture.until_passed(operator, "MCPServer", before).await;
    fixture.quiet(record).await;
}

/// Somebody who says that servers answer as a test wants.
#[derive(Debug)]
pub struct Script {
    answer: Mutex<Result<usize, Silence>>,
    asked: AtomicUsize,
    address: Mutex<Option<(String, SocketAddr)>>,
}

impl Script {
    pub fn new(answer: Result<usize, Silence>) -> Arc<Self> {
        Arc::new(Self { answer: Mutex::new(answer), asked: AtomicUsize::new(0), address: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Handshake for Script {
    fn shake(&self, url: String, address: SocketAddr) -> BoxFuture<'static, Result<usize, Silence>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        *self.address.lock() = Some((url, address));
        let answer = self.answer.lock().clone();
        async move { answer }.boxed()
    }
}

async fn operator_with(fixture: &Fixture, script: &Arc<Script>) -> (Operator, Record) {
    let settings = Settings { handshake: Some(script.clone()), ..Settings::default() };
    fixture.operator_with(settings, Faults::none()).await
}

async fn until_verified(fixture: &Fixture, status: ConditionStatus) -> (MCPServer, Condition) {
    let judged = |server: &MCPServer| {
        let found = condition(server, types::VERIFIED);
        found.is_some_and(|found| found.status == status && found.observed_generation == server.metadata.generation)
    };
    let server = fixture.until::<MCPServer>("s", "judged", judged).await;
    let found = condition(&server, types::VERIFIED).unwrap();
    (server, found)
}

async fn a_server_is_verified_beside_everything_else(fixture: Fixture) {
    let script = Script::new(Err(Silence::Failed("nobody answers".to_owned())));
    let (operator, record) = operator_with(&fixture, &script).await;
    fixture.create::<MCPServer>("s", json!({"image": "i", "transport": "sse", "proxyPort": 9090})).await;
    settled(&fixture, "s").await;
    assert_eq!(script.asked(), 0, "it is not ready");
    ready(&fixture, "s").await;
    let (server, found) = until_verified(&fixture, ConditionStatus::False).await;
    assert_eq!((phase(&server), found.reason.as_str()), (Some(MCPServerPhase::Ready), "HandshakeFailed"));
    let text = "MCP handshake failed: nobody answers; the logs of Deployment s and of StatefulSet s tell more";
    assert_eq!(found.message, text);
    let service = fixture.child::<k8s_openapi::api::core::v1::Service>("mcp-s-proxy").await;
    let (url, address) = script.address.lock().clone().unwrap();
    assert_eq!(Some(url.as_str()), server.status.as_ref().unwrap().url.as_deref());
    assert_eq!(address.to_string(), format!("{}:9090", service["spec"]["clusterIP"].as_str().unwrap()));
    let again = async || (waiting(&operator, "MCPServer") == 1).then_some(());
    fixture.eventually("another question later", again).await;

    // A proxy of another generation is asked as soon as it has replaced the old one.
    *script.answer.lock() = Ok(3);
    fixture.merge::<MCPServer>("s", json!({"spec": {"image": "j"}})).await;
    let replaced = async || {
        run_pods(&fixture, "s").await;
        let server = fixture.api::<MCPServer>().get("s").await.unwrap();
        condition(&server, types::VERIFIED).filter(|found| found.observed_generation == Some(2))
    };
    let found = fixture.eventually("another verdict", replaced).await;
    assert_eq!((found.status, found.reason.as_str()), (ConditionStatus::True, "HandshakeSucceeded"));
    assert_eq!(found.message, "MCP handshake succeeded; the server has 3 tools");
    look(&fixture, &operator, &record).await;
    let asked = script.asked();
    let before = record.writes().len();
    look(&fixture, &operator, &record).await;
    drop(operator);

    // Who has verified it does not matter.
    let (operator, record_of_next) = operator_with(&fixture, &script).await;
    look(&fixture, &operator, &record_of_next).await;
    assert_eq!((script.asked(), record.writes().len()), (asked, before), "what is known is not asked again");
    assert!(record_of_next.writes().is_empty(), "{:#?}", record_of_next.writes());

    // One that is not ready is not verified either.
    fixture.patch::<Deployment>("s", json!({"spec": {"replicas": 0}})).await;
    let stopped = |server: &MCPServer| phase(server) == Some(MCPServerPhase::Stopped);
    let server = fixture.until::<MCPServer>("s", "stopped", stopped).await;
    assert_eq!(condition(&server, types::VERIFIED), None);
}

async fn a_server_that_asks_who_calls_is_neither_verified_nor_not(fixture: Fixture) {
    let script = Script::new(Err(Silence::Unauthorized));
    let (operator, record) = operator_with(&fixture, &script).await;
    fixture.create::<MCPServer>("s", json!({"image": "i"})).await;
    ready(&fixture, "s").await;
    let (_, found) = until_verified(&fixture, ConditionStatus::Unknown).await;
    assert_eq!(found.reason, "AuthenticationRequired");
    look(&fixture, &operator, &record).await;
    let rest = async || (waiting(&operator, "MCPServer") == 0).then_some(());
    fixture.eventually("rest", rest).await;
    assert_eq!(script.asked(), 1, "asking again would tell nothing new");
}
