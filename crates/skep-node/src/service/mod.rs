//! Services: their addresses, their names, and the way to the pods behind them.

mod balance;
mod closed_port;
mod directory;
mod dns;
mod local_port;
mod proxy;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::broker::Broker;
use crate::network::Reach;
pub use closed_port::closed_ports;
use directory::Directory;
use dns::NameServer;
use local_port::LocalPorts;
pub use local_port::local_ports;
use proxy::Proxy;

/// How long to wait before a port that somebody else had is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// What the services of a node need to know.
pub struct ServiceConfig {
    pub client: Client,
    pub broker: Broker,
    /// The name of the node.
    pub name: String,
    /// The address of the node on the network of the pods.
    pub node: Ipv4Addr,
    /// Where addresses of pods and services are.
    pub reach: Reach,
    /// Where the name server listens.
    pub dns: Option<SocketAddr>,
    /// Whom it asks about the rest of the world, where pods can reach it.
    pub forward: Option<SocketAddr>,
    /// Services that belong to an object of this API group are on the loopback of the machine, as balancers are.
    pub local_group: Option<&'static str>,
    /// Where this process reaches the API server, when that is not where its endpoints say: pods get there, too.
    pub api_server: Option<SocketAddr>,
}

impl std::fmt::Debug for ServiceConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ServiceConfig").field("node", &self.node).finish_non_exhaustive()
    }
}

/// Services that are served. Dropping it closes all of them.
#[derive(Debug)]
pub struct Services {
    _tasks: JoinSet<()>,
}

impl Services {
    /// Follows the API server and serves what it says.
    pub async fn start(config: ServiceConfig) -> io::Result<Self> {
        let mut tasks = JoinSet::new();
        let (sender, directory) = watch::channel(Directory::default());
        if let Some(address) = config.dns {
            let server = NameServer::bind(address, directory, config.forward).await?;
            tasks.spawn(server.serve());
        }
        tasks.spawn(follow(config, sender));
        Ok(Self { _tasks: tasks })
    }
}

async fn follow(config: ServiceConfig, sender: watch::Sender<Directory>) {
    let (services, services_writer) = reflector::store::<Service>();
    let (slices, slices_writer) = reflector::store::<EndpointSlice>();
    let watched = watcher(Api::<Service>::all(config.client.clone()), watcher::Config::default());
    let services_changed = reflector(services_writer, watched.default_backoff()).map(drop);
    let watched = watcher(Api::<EndpointSlice>::all(config.client.clone()), watcher::Config::default());
    let slices_changed = reflector(slices_writer, watched.default_backoff()).map(drop);
    let news = futures::stream::select(services_changed.boxed(), slices_changed.boxed());
    // Many changes that come together are one.
    let mut news = news.ready_chunks(1_000);
    let mut proxy = Proxy::new(config.broker.clone(), config.reach.host(config.node));
    let mut local_ports = LocalPorts::default();
    let mut balancers = BTreeSet::new();
    loop {
        tokio::select! {
            some = news.next() => if some.is_none() { return },
            () = sleep(TRY_AGAIN), if !proxy.is_complete() => {}
        }
        let (services, slices) = (services.state(), slices.state());
        let services: Vec<&Service> = services.iter().map(AsRef::as_ref).collect();
        let mut directory = Directory::new(&config.name, services.iter().copied(), slices.iter().map(AsRef::as_ref));
        directory.resolve(config.reach);
        if let Some(address) = config.api_server {
            directory.lead_to_api_server(address);
        }
        let changed = sender.send_if_modified(|known| {
            let changed = *known != directory;
            *known = directory.clone();
            changed
        });
        if changed || !proxy.is_complete() {
            proxy.update(&directory).await;
        }
        // One of several nodes would contradict the others, who have other machines.
        if config.local_group.is_some() {
            closed_port::remember(&config.client, &services, &proxy.closed_ports()).await;
        }
        local_ports.assign(&config.client, &config.broker, config.local_group, &services).await;
        announce(&config.client, &services, &mut balancers).await;
    }
}

/// A balancer is on the machine's own loopback address; its status says so.
async fn announce(client: &Client, services: &[&Service], announced: &mut BTreeSet<String>) {
    for service in services {
        let ingress = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let has_address = ingress.and_then(|balancer| balancer.ingress.as_ref()).is_some_and(|list| !list.is_empty());
        let uid = service.uid().unwrap_or_default();
        if !local_port::is_balancer(service) || has_address || announced.contains(&uid) {
            continue;
        }
        let api: Api<Service> = Api::namespaced(client.clone(), &service.namespace().unwrap_or_default());
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": Ipv4Addr::LOCALHOST, "ipMode": "Proxy"}]}}});
        match api.patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(&status)).await {
            Ok(_) => drop(announced.insert(uid)),
            Err(error) => tracing::debug!(service = service.name_any(), %error, "address not announced"),
        }
    }
}
