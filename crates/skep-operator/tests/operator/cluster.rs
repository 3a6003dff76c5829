//! Clusters of two kinds, each started once, and a namespace in it for every test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_conformance::changes::Place;
use skep_conformance::control_plane::ControlPlane;
use skep_conformance::definitions;
use skep_kube::auth::tokens::{SigningKey, TokenAuthority};
use skep_kube::controllers::{self, Controllers};
use skep_kube::server::Server;
use skep_kube::store::Store;
use skep_operator::cluster::{ChildKind, OwnKind};
use skep_operator::operator::Operator;
use skep_operator::settings::Settings;
use tokio::sync::{Mutex, OnceCell};

use crate::rights;
use crate::wire::{self, Faults, Record};

/// Whose API server and controllers it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ours,
    Real,
}

/// The control plane that the tests share, or that there is none here.
enum Real {
    NotStarted,
    Missing,
    Running(Arc<ControlPlane>),
}

static OURS: OnceCell<Client> = OnceCell::const_new();
static REAL: Mutex<Real> = Mutex::const_new(Real::NotStarted);

/// How long and how often something is waited for: far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The version that accepts everything.
pub const LOOSE: &str = "loose";

/// A namespace in a cluster that has our CRDs.
pub struct Fixture {
    pub client: Client,
    pub namespace: String,
}

/// `None` when there is no such cluster here; that has been told.
pub async fn fixture(kind: Kind, namespace: &str) -> Option<Fixture> {
    let client = match kind {
        Kind::Ours => OURS.get_or_init(ours).await.clone(),
        Kind::Real => control_plane().await?.admin().await.unwrap(),
    };
    let fixture = Fixture { client, namespace: namespace.to_owned() };
    Some(fixture.sibling(namespace).await)
}

/// Our API server with its controllers, which run until the process ends.
async fn ours() -> Client {
    let tokens = TokenAuthority::new(SigningKey::generate().unwrap());
    let server = Server::new(Store::open(None).unwrap(), tokens, "127.0.0.1:0").await.unwrap();
    tokio::spawn(controllers::run(server.client(), Controllers::all(), std::future::pending()));
    install(&server.client()).await;
    server.client()
}

/// The real control plane; none when there is none here, which has been told.
pub async fn control_plane() -> Option<Arc<ControlPlane>> {
    let mut real = REAL.lock().await;
    if matches!(*real, Real::NotStarted) {
        *real = match ControlPlane::start_or_skip("the operator on a real control plane").await {
            Some(plane) => {
                install(&plane.admin().await.unwrap()).await;
                Real::Running(Arc::new(plane))
            }
            None => Real::Missing,
        };
    }
    match &*real {
        Real::Running(plane) => Some(plane.clone()),
        Real::NotStarted | Real::Missing => None,
    }
}

/// Ends what was started.
pub async fn end() {
    *REAL.lock().await = Real::Missing;
}

async fn install(client: &Client) {
    definitions::install(client, with_loose_version).await.unwrap();
}

/// A version without a schema, through which objects can be written that today's schema refuses.
fn with_loose_version(mut definition: Value) -> Value {
    let version = json!({"name": LOOSE, "served": true, "storage": false, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    definition["spec"]["versions"].as_array_mut().unwrap().push(version);
    definition
}

impl Fixture {
    /// Another namespace in the same cluster.
    pub async fn sibling(&self, namespace: &str) -> Self {
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &object).await.unwrap();
        let fixture = Self { client: self.client.clone(), namespace: namespace.to_owned() };
        rights::grant(&fixture).await;
        fixture
    }

    /// Starts an operator for this namespace.
    pub async fn operator(&self) -> (Operator, Record) {
        self.operator_with(Settings::default(), Faults::none()).await
    }

    /// Starts an operator for this namespace with other settings, and with faults on the way to the API server.
    pub async fn operator_with(&self, settings: Settings, faults: Faults) -> (Operator, Record) {
        let (operator, record) = self.starting_operator(settings, faults);
        operator.ready().await;
        (operator, record)
    }

    /// As [`Self::operator_with`], without waiting until it knows anything.
    pub fn starting_operator(&self, settings: Settings, faults: Faults) -> (Operator, Record) {
        let (client, record) = self.client_of_operator(faults);
        let settings = Settings { namespaces: vec![self.namespace.clone()], ..settings };
        (Operator::start(client, &settings, Arc::default()), record)
    }

    /// A client with the rights of an operator for this namespace.
    pub fn client_of_operator(&self, faults: Faults) -> (Client, Record) {
        wire::client(self.client.clone(), &rights::user_of(&self.namespace), &self.namespace, faults)
    }

    pub fn api<K: OwnKind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create<K: OwnKind>(&self, name: &str, spec: Value) -> K {
        let object = json!({"apiVersion": K::api_version(&()), "kind": K::DEFINITION.kind, "metadata": {"name": name}, "spec": spec});
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn merge<K: OwnKind>(&self, name: &str, patch: Value) -> K {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    }

    pub async fn delete<K: OwnKind>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Looks at an object until it is as wanted.
    pub async fn until<K: OwnKind>(&self, name: &str, what: &str, wanted: impl Fn(&K) -> bool) -> K {
        let mut last = None;
        let found = asked(async || {
            last = self.api::<K>().get_opt(name).await.unwrap();
            last.clone().filter(&wanted)
        });
        let found = found.await;
        found.unwrap_or_else(|| panic!("{} {name} never was {what}: {last:#?}", K::DEFINITION.kind))
    }

    /// Asks until there is an answer.
    pub async fn eventually<T>(&self, what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
        asked(ask).await.unwrap_or_else(|| panic!("there never was {what}"))
    }

    /// Waits until an object is gone.
    pub async fn until_gone<K: OwnKind>(&self, name: &str) {
        let is_gone = async || self.api::<K>().get_opt(name).await.unwrap().is_none().then_some(());
        self.eventually(&format!("an end of {} {name}", K::DEFINITION.kind), is_gone).await;
    }
}

/// Asks again and again, ever more seldom, until there is an answer: those who wait must not keep others from working.
async fn asked<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
    while begun.elapsed() < PATIENCE {
        if let Some(answer) = ask().await {
            return Some(answer);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
    None
}

/// How often a controller has looked at an object.
pub fn passes(operator: &Operator, kind: &str) -> u64 {
    metric(operator, &format!("skep_operator_reconcile_total{{controller=\"{kind}\""))
}

/// How often a controller has failed to bring an object to its desired state.
pub fn failures(operator: &Operator, kind: &str) -> u64 {
    metric(operator, &format!("skep_operator_reconcile_total{{controller=\"{kind}\",result=\"error\""))
}

/// How many objects a controller is yet to look at, sooner or later.
pub fn waiting(operator: &Operator, kind: &str) -> u64 {
    metric(operator, &format!("skep_operator_queue_depth{{controller=\"{kind}\""))
}

/// The sum of what the operator has counted under names that begin like this.
fn metric(operator: &Operator, wanted: &str) -> u64 {
    let text = operator.metrics().text();
    let counts = text.lines().filter(|line| line.starts_with(wanted)).filter_map(|line| line.rsplit(' ').next());
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

impl Fixture {
    /// Waits until a controller has looked again.
    pub async fn until_passed(&self, operator: &Operator, kind: &str, before: u64) {
        self.eventually("another pass", async || (passes(operator, kind) > before).then_some(())).await;
    }

    /// Waits until nothing has been written for a while.
    pub async fn quiet(&self, record: &Record) {
        let mut before = usize::MAX;
        self.eventually("peace", async || {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let now = record.writes().len();
            (std::mem::replace(&mut before, now) == now).then_some(())
        })
        .await;
    }

    /// The namespace, for those who know nothing of operators.
    pub fn place(&self) -> Place {
        Place { client: self.client.clone(), namespace: self.namespace.clone() }
    }

    /// Objects of any kind.
    pub fn objects(&self, resource: &ApiResource) -> Api<DynamicObject> {
        self.place().objects(resource)
    }

    fn children<K: ChildKind>(&self) -> Api<DynamicObject> {
        self.objects(&ApiResource::erase::<K>(&()))
    }

    /// A built-in object as JSON.
    pub async fn child<K: ChildKind>(&self, name: &str) -> Value {
        self.maybe_child::<K>(name).await.unwrap_or_else(|| panic!("there is no {} {name}", K::kind(&())))
    }

    pub async fn maybe_child<K: ChildKind>(&self, name: &str) -> Option<Value> {
        let found = self.children::<K>().get_opt(name).await.unwrap();
        found.map(|object| serde_json::to_value(object).unwrap())
    }

    pub async fn create_child<K: ChildKind>(&self, object: Value) {
        let object = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": object["metadata"]});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.children::<K>().create(&PostParams::default(), &object).await.unwrap();
    }

    /// The reference to a controller that is somebody else's: a ConfigMap, which is made for it.
    pub async fn somebody(&self) -> Value {
        self.create_child::<ConfigMap>(json!({"metadata": {"name": "somebody"}})).await;
        let uid = self.child::<ConfigMap>("somebody").await["metadata"]["uid"].clone();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": uid, "controller": true})
    }

    /// Changes a built-in object as somebody else.
    pub async fn patch<K: ChildKind>(&self, name: &str, patch: Value) {
        let params = PatchParams { field_manager: Some("somebody-else".to_owned()), ..PatchParams::default() };
        self.children::<K>().patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
    }

    pub async fn until_child<K: ChildKind>(&self, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let what = format!("{} {name} {what}", K::kind(&()));
        self.eventually(&what, async || self.maybe_child::<K>(name).await.filter(|object| wanted(object))).await
    }

    pub async fn until_child_gone<K: ChildKind>(&self, name: &str) {
        let what = format!("{} {name} gone", K::kind(&()));
        self.eventually(&what, async || self.maybe_child::<K>(name).await.is_none().then_some(())).await;
    }
}
