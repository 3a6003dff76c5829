//! The operator as a whole: the watches, and one controller per kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use skep_api::kind::Kind as _;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};
use skep_control::{Key, Queue};
use tokio::task::JoinSet;

use crate::cluster::{Cluster, OwnKind};
use crate::config::{ConfigController, ConfigKind};
use crate::controller::{self, Concurrency, Reconcile};
use crate::events::Recorder;
use crate::mcp_remote_proxy::MCPRemoteProxyController;
use crate::mcp_server::MCPServerController;
use crate::metrics::Metrics;
use crate::migration;
use crate::settings::Settings;

/// The kinds that have a controller.
pub const KINDS: [&str; 8] = [
    MCPAuthzConfig::DEFINITION.kind,
    MCPExternalAuthConfig::DEFINITION.kind,
    MCPOIDCConfig::DEFINITION.kind,
    MCPRemoteProxy::DEFINITION.kind,
    MCPServer::DEFINITION.kind,
    MCPTelemetryConfig::DEFINITION.kind,
    MCPToolConfig::DEFINITION.kind,
    MCPWebhookConfig::DEFINITION.kind,
];

/// How long the first lists may take before it is told that they are missing.
const WAITED_LONG: Duration = Duration::from_secs(15);

/// An operator that runs. Dropping it ends everything; nothing needs to be put in order first.
#[derive(Debug)]
pub struct Operator {
    cluster: Arc<Cluster>,
    metrics: Arc<Metrics>,
    queues: BTreeMap<&'static str, Arc<Queue<Key>>>,
    concurrency: Concurrency,
    /// Whether NetworkPolicies have to be known before anything is done.
    enforces: bool,
    tasks: JoinSet<()>,
}

impl Operator {
    /// Watches the cluster and, as soon as all of it is known, reconciles. What happens is counted in `metrics`.
    pub fn start(client: Client, settings: &Settings, metrics: Arc<Metrics>) -> Self {
        let selected = KINDS.into_iter().filter(|kind| settings.controllers.contains(kind));
        let queues: BTreeMap<_, _> = selected.map(|kind| (kind, Arc::default())).collect();
        let client = metrics.counted(client);
        let (cluster, tasks) = Cluster::watch(client, &settings.namespaces, queues.clone());
        let concurrency = Concurrency(settings.concurrency);
        let enforces = settings.proxy.enforce_network_profiles;
        let mut operator = Self { cluster, metrics, queues, concurrency, enforces, tasks };
        operator.config::<MCPAuthzConfig>();
        operator.config::<MCPExternalAuthConfig>();
        operator.config::<MCPOIDCConfig>();
        operator.config::<MCPTelemetryConfig>();
        operator.config::<MCPToolConfig>();
        operator.config::<MCPWebhookConfig>();
        let (cluster, recorder) = (operator.cluster.clone(), operator.recorder::<MCPServer>());
        let (proxy, handshake) = (settings.proxy.clone(), settings.handshake.clone());
        operator.control(MCPServerController::new(cluster, recorder, proxy, handshake));
        let (cluster, recorder) = (operator.cluster.clone(), operator.recorder::<MCPRemoteProxy>());
        operator.control(MCPRemoteProxyController::new(cluster, recorder, settings.proxy.clone()));
        if let Some(page) = settings.migration_page {
            operator.migrate(page);
        }
        operator
    }

    /// Waits until everything that is watched is known, and says what it waits for when that takes long.
    pub async fn ready(&self) {
        while tokio::time::timeout(WAITED_LONG, self.cluster.complete(self.enforces)).await.is_err() {
            let kinds = self.cluster.unknown(self.enforces).join(", ");
            tracing::warn!(
                kinds,
                "nothing is reconciled: these kinds cannot be listed; install the CRDs (`skep crds | kubectl apply \
                 --server-side -f -`), and let the operator list and watch them (deploy/manifests has the roles)"
            );
        }
    }

    /// Looks at everything again, whether it has changed or not. At rest that writes nothing.
    pub fn resync(&self) {
        self.cluster.wake_all();
    }

    /// What has been counted so far.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    fn config<K: ConfigKind>(&mut self) {
        let recorder = self.recorder::<K>();
        self.control(ConfigController::<K>::new(self.cluster.clone(), recorder));
    }

    /// Stores objects of older versions anew.
    fn migrate(&mut self, page: u32) {
        let client = self.cluster.client.clone();
        let (recorder, publishing) = Recorder::new(client.clone(), "storage-version-migrator");
        self.tasks.spawn(publishing);
        self.tasks.spawn(migration::run(client, recorder, page));
    }

    /// Who tells events about a kind.
    fn recorder<K: OwnKind>(&mut self) -> Recorder {
        let source = format!("{}-controller", K::DEFINITION.singular());
        let (recorder, publishing) = Recorder::new(self.cluster.client.clone(), &source);
        self.tasks.spawn(publishing);
        recorder
    }

    /// Runs the controller of a kind, if that was asked for.
    fn control<R: Reconcile>(&mut self, reconciler: R) {
        let kind = <R::Kind as skep_api::kind::Kind>::DEFINITION.kind;
        let Some(queue) = self.queues.get(kind).cloned() else { return };
        let (cluster, concurrency, enforces) = (self.cluster.clone(), self.concurrency, self.enforces);
        let passes = self.metrics.controller(kind, queue.clone());
        self.tasks.spawn(async move {
            cluster.complete(enforces).await;
            controller::run(&reconciler, &cluster, &queue, concurrency, passes.as_ref()).await;
        });
    }
}
