//! The controllers that bring built-in objects to life: pods for Deployments, addresses for Services, and so on.
//!
//! They need nothing but a `kube::Client`, so that they work on any API server. Each one watches, compares what it
//! sees with what should be (pure functions, in files named `plan`, `decide` or after their subject) and writes the
//! difference. At rest nothing is written.

mod account_tokens;
mod cluster;
mod deployment;
mod discovery;
mod endpoints;
mod error;
pub mod events;
mod garbage;
mod hash;
mod namespace;
mod nodes;
mod objects;
mod ownership;
mod pods;
mod quantity;
mod quota;
mod replica_set;
mod scheduler;
mod service_accounts;
mod stateful_set;
mod volumes;

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use kube::Client;
use tokio::task::JoinSet;

use cluster::Cluster;
pub use error::ControllerError;
pub use volumes::Storage;

/// One of the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    Deployment,
    ReplicaSet,
    StatefulSet,
    /// EndpointSlices and Endpoints of Services.
    Endpoints,
    GarbageCollection,
    /// Empties namespaces that are being deleted.
    Namespace,
    /// The taints that follow the readiness of nodes.
    Node,
    Scheduler,
    /// The default service account, and the certificate of the API server, in every namespace; and Secrets with tokens.
    ServiceAccount,
    /// Volumes for claims.
    Volume,
}

impl Controller {
    pub const ALL: [Self; 10] = [
        Self::Deployment,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::Endpoints,
        Self::GarbageCollection,
        Self::Namespace,
        Self::Node,
        Self::Scheduler,
        Self::ServiceAccount,
        Self::Volume,
    ];
}

/// Which controllers to run, and what some of them need to know.
#[derive(Clone, Debug)]
pub struct Controllers {
    selected: BTreeSet<Controller>,
    root_certificate: Option<String>,
    storage: Option<Storage>,
}

impl Controllers {
    pub fn all() -> Self {
        Self::only(Controller::ALL)
    }

    pub fn only(selected: impl IntoIterator<Item = Controller>) -> Self {
        Self { selected: selected.into_iter().collect(), root_certificate: None, storage: None }
    }

    #[must_use]
    pub fn without(mut self, controller: Controller) -> Self {
        self.selected.remove(&controller);
        self
    }

    /// The certificate (PEM) that pods check the API server by. Without it, no `kube-root-ca.crt` is kept.
    #[must_use]
    pub fn root_certificate(mut self, pem: impl Into<String>) -> Self {
        self.root_certificate = Some(pem.into());
        self
    }

    /// Where volumes come from. Without it, claims are left to somebody else.
    #[must_use]
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = Some(storage);
        self
    }

    fn build(self, cluster: &mut Cluster) -> Vec<BoxFuture<'static, ()>> {
        let Self { selected, root_certificate, storage } = self;
        let mut running: Vec<BoxFuture<'static, ()>> = Vec::new();
        for controller in selected {
            running.push(match controller {
                Controller::Deployment => Box::pin(deployment::Controller::new(cluster).run()),
                Controller::ReplicaSet => Box::pin(replica_set::Controller::new(cluster).run()),
                Controller::StatefulSet => Box::pin(stateful_set::Controller::new(cluster).run()),
                Controller::Endpoints => Box::pin(endpoints::Controller::new(cluster).run()),
                Controller::GarbageCollection => Box::pin(garbage::Controller::new(cluster).run()),
                Controller::Namespace => Box::pin(namespace::Controller::new(cluster).run()),
                Controller::Node => Box::pin(nodes::Controller::new(cluster).run()),
                Controller::Scheduler => Box::pin(scheduler::Controller::new(cluster).run()),
                Controller::ServiceAccount => {
                    let accounts = service_accounts::Controller::new(cluster, root_certificate.clone());
                    let tokens = account_tokens::Controller::new(cluster, root_certificate.clone());
                    Box::pin(async {
                        futures::join!(accounts.run(), tokens.run());
                    })
                }
                Controller::Volume => match storage.clone() {
                    Some(storage) => Box::pin(volumes::Controller::new(cluster, storage).run()),
                    None => continue,
                },
            });
        }
        running
    }
}

/// Runs the selected controllers until `shutdown` completes. Work in progress is then dropped: whatever is half done
/// is found and finished by the next run.
pub async fn run(client: Client, controllers: Controllers, shutdown: impl Future<Output = ()>) {
    let mut cluster = Cluster::new(client);
    let running = controllers.build(&mut cluster);
    let mut tasks = JoinSet::new();
    for task in running.into_iter().chain(cluster.into_watches()) {
        tasks.spawn(task);
    }
    shutdown.await;
    tasks.shutdown().await;
}
