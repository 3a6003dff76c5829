//! An API server with our controllers, a node, and a kubelet of sorts.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::discovery::ApiResource;
use kube::{Api, Client, Config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use skep_conformance::control_plane::ControlPlane;
use skep_conformance::node;
use skep_kube::controllers::{Controllers, Storage, run};
use tokio::task::JoinHandle;
use tower::util::MapRequestLayer;

pub(crate) use skep_conformance::node::NODE;

pub(crate) const CLASS: &str = "standard";
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct Cluster {
    control_plane: ControlPlane,
    client: ClientOfTest,
    writes: Arc<Writes>,
    running: Vec<JoinHandle<()>>,
}

struct ClientOfTest(Client);

impl Debug for ClientOfTest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Client")
    }
}

/// What the controllers have written.
#[derive(Debug, Default)]
struct Writes {
    count: AtomicUsize,
    last: Mutex<VecDeque<String>>,
}

impl Cluster {
    /// With our controllers, and no others.
    pub(crate) async fn start_or_skip(test: &str) -> Option<Self> {
        let mut cluster = Self::around(ControlPlane::start_bare_or_skip(test).await?).await;
        let counted = counting_client(&cluster.control_plane, cluster.writes.clone()).await;
        let storage =
            Storage { class: CLASS.into(), provisioner: "skep.dev/folder".into(), folder: cluster.volume_folder() };
        let selection = Controllers::all().root_certificate(cluster.certificate()).storage(storage);
        cluster.running.push(tokio::spawn(run(counted, selection, std::future::pending())));
        node::join(cluster.client()).await.unwrap();
        Some(cluster)
    }

    /// With the controllers of Kubernetes, to see whether they do the same.
    pub(crate) async fn start_real_or_skip(test: &str) -> Option<Self> {
        let cluster = Self::around(ControlPlane::start_or_skip(test).await?).await;
        node::join(cluster.client()).await.unwrap();
        Some(cluster)
    }

    async fn around(control_plane: ControlPlane) -> Self {
        let client = control_plane.admin().await.unwrap();
        let running = vec![tokio::spawn(node::run(client.clone())), tokio::spawn(node::beat(client.clone()))];
        Self { control_plane, client: ClientOfTest(client), writes: Arc::default(), running }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.0.clone()
    }

    pub(crate) fn certificate(&self) -> String {
        self.control_plane.authority().certificate()
    }

    pub(crate) fn volume_folder(&self) -> PathBuf {
        self.control_plane.folder().join("volumes")
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.count.load(Ordering::Relaxed)
    }

    pub(crate) fn last_writes(&self) -> Vec<String> {
        self.writes.last.lock().iter().cloned().collect()
    }

    /// Runs kubectl; the text is the output, or the error if it failed.
    pub(crate) async fn try_kubectl(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = self.control_plane.kubectl();
        command.args(arguments);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let outcome = self.try_kubectl(arguments).await;
        outcome.unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
    }

    /// Applies objects; their namespace is made first.
    pub(crate) async fn apply(&self, namespace: &str, objects: Value) {
        if self.get("namespace", "", namespace).await.is_none() {
            self.kubectl(&["create", "namespace", namespace]).await;
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let file = self.control_plane.folder().join(format!("{namespace}.json"));
        std::fs::write(&file, list.to_string()).unwrap();
        self.kubectl(&["apply", "-n", namespace, "-f", file.to_str().unwrap()]).await;
    }

    pub(crate) async fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let answer = self.api(kind, namespace).get_opt(name).await.unwrap()?;
        Some(serde_json::to_value(answer).unwrap())
    }

    /// The objects of a namespace, by name.
    pub(crate) async fn list(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let listed = self.api(kind, namespace).list(&kube::api::ListParams::default()).await.unwrap();
        let mut objects: Vec<Value> =
            listed.items.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect();
        objects.sort_by_key(name_of);
        objects
    }

    pub(crate) async fn patch(&self, kind: &str, namespace: &str, name: &str, patch: Value) {
        let api = self.api(kind, namespace);
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// What was told about an object, as `reason: message`.
    async fn events(&self, namespace: &str, name: &str) -> Vec<String> {
        let events = self.list("event", namespace).await;
        let about = events.iter().filter(|event| event["involvedObject"]["name"] == name);
        about.map(|event| format!("{}: {}", text(&event["reason"]), text(&event["message"]))).collect()
    }

    /// Waits for an event whose `reason: message` begins like this.
    pub(crate) async fn is_told(&self, namespace: &str, name: &str, beginning: &str) {
        eventually(&format!("{beginning:?} is told"), || async {
            let events = self.events(namespace, name).await;
            holds(events.iter().any(|event| event.starts_with(beginning)), events)
        })
        .await;
    }

    fn api(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version, kind, plural) = match kind {
            "namespace" => ("", "v1", "Namespace", "namespaces"),
            "node" => ("", "v1", "Node", "nodes"),
            "pod" => ("", "v1", "Pod", "pods"),
            "service" => ("", "v1", "Service", "services"),
            "event" => ("", "v1", "Event", "events"),
            "configmap" => ("", "v1", "ConfigMap", "configmaps"),
            "secret" => ("", "v1", "Secret", "secrets"),
            "serviceaccount" => ("", "v1", "ServiceAccount", "serviceaccounts"),
            "endpoints" => ("", "v1", "Endpoints", "endpoints"),
            "pvc" => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            "pv" => ("", "v1", "PersistentVolume", "persistentvolumes"),
            "endpointslice" => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
            "deployment" => ("apps", "v1", "Deployment", "deployments"),
            "replicaset" => ("apps", "v1", "ReplicaSet", "replicasets"),
            "statefulset" => ("apps", "v1", "StatefulSet", "statefulsets"),
            "controllerrevision" => ("apps", "v1", "ControllerRevision", "controllerrevisions"),
            other => panic!("{other} is not known here"),
        };
        let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        if namespace.is_empty() {
            Api::all_with(self.client(), &resource)
        } else {
            Api::namespaced_with(self.client(), namespace, &resource)
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.running.iter().for_each(JoinHandle::abort);
    }
}

async fn counting_client(control_plane: &ControlPlane, writes: Arc<Writes>) -> Client {
    let identity = control_plane.authority().client("admin", Some("system:masters")).unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&control_plane.kubeconfig(&identity)).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let count = MapRequestLayer::new(move |request: http::Request<Body>| {
        if request.method() != http::Method::GET {
            writes.count.fetch_add(1, Ordering::Relaxed);
            let mut last = writes.last.lock();
            last.push_back(format!("{} {}", request.method(), request.uri()));
            if last.len() > 20 {
                last.pop_front();
            }
        }
        request
    });
    ClientBuilder::try_from(config).unwrap().with_layer(&count).build()
}

/// Polls until `check` gives a value; fails with what was seen last.
pub(crate) async fn eventually<T, S: Debug, F: Future<Output = Result<T, S>>>(what: &str, check: impl Fn() -> F) -> T {
    let start = Instant::now();
    loop {
        match check().await {
            Ok(value) => return value,
            Err(seen) => assert!(start.elapsed() < PATIENCE, "not so: {what}\nlast seen: {seen:#?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// `Ok` if it holds, else what was seen.
pub(crate) fn holds<S>(condition: bool, seen: S) -> Result<(), S> {
    if condition { Ok(()) } else { Err(seen) }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn name_of(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

pub(crate) fn names(objects: &[Value]) -> Vec<String> {
    objects.iter().map(name_of).collect()
}

/// A condition as `status reason`.
pub(crate) fn condition(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.map(|found| format!("{} {}", text(&found["status"]), text(&found["reason"]))).unwrap_or_default()
}
