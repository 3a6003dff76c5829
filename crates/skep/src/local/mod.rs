//! Everything on one machine: API server, controllers, a node, and the objects that a person applies.

mod demo;
mod manifests;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_kube::controllers::{self, Controllers, Storage};
use skep_node::broker::{Broker, BrokerError};
use skep_node::image::{ImageConfig, ImageMap};
use skep_node::isolation::{self, Isolation};
use skep_node::kubelet;
use skep_node::network::{Network, NetworkConfig};
use skep_node::node::{KubeletAddress, Node, NodeConfig};
use skep_node::service::{LocalEndpoints, ServiceConfig, Services};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::api_server::ApiServer;
use crate::hint::Hinted;
pub(crate) use manifests::{Manifest, read};

/// The name under which Skep owns what it applies.
const MANAGER: &str = "skep";
const NODE_NAME: &str = "skep";
const POD_RANGE: &str = "10.244.0.0/16";
const SERVICE_RANGE: &str = "10.96.0.0/16";
/// The addresses that every cluster has.
const API_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
const DNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);

/// What to start, and where.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) isolation: Isolation,
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) demo: bool,
    pub(crate) image_map: ImageMap,
}

/// A machine that runs.
pub(crate) struct Local {
    pub(crate) client: Client,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) address: SocketAddr,
    server: ApiServer,
    controllers: JoinHandle<()>,
    stop_controllers: oneshot::Sender<()>,
    services: Services,
    kubelet: JoinHandle<()>,
    node: Node,
}

impl Local {
    pub(crate) async fn start(settings: Settings) -> anyhow::Result<Self> {
        make_private(&settings.data)?;
        let broker = Broker::connect().context("cannot reach the process outside of the namespaces")?;
        let listener = broker.listen(settings.listen).await.map_err(|error| busy(&error, settings.listen))?;
        let server = ApiServer::start(&settings.data, listener, &[]).await?;
        let client = server.client();
        let ranges = NetworkConfig { pod_range: POD_RANGE.parse()?, service_range: SERVICE_RANGE.parse()? };
        let network = Network::start(settings.isolation, ranges).await?;
        let has_services = settings.isolation == Isolation::Namespaces;
        if has_services {
            server.serve_pods(SocketAddr::from((API_ADDRESS, 443))).await?;
        }
        apply(&client, &api_service()).await?;
        for entry in skep_api::crd::ALL {
            apply(&client, &entry.document()).await?;
        }
        let (stop_controllers, stopped) = oneshot::channel::<()>();
        let storage = Storage {
            class: "standard".to_owned(),
            provisioner: "skep.dev/folder".to_owned(),
            folder: settings.data.join("volumes"),
        };
        let all = Controllers::all().root_certificate(server.authority()).storage(storage);
        let controllers = tokio::spawn(controllers::run(client.clone(), all, async {
            // A sender that is gone means the same.
            let _ = stopped.await;
        }));
        let dns = has_services.then_some(SocketAddr::from((DNS_ADDRESS, 53)));
        let services = Services::start(ServiceConfig {
            client: client.clone(),
            broker: broker.clone(),
            node: network.node_address(),
            dns,
            forward: None,
        })
        .await
        .context("cannot start the name server of the pods")?;
        let node_address = match settings.isolation {
            Isolation::Namespaces => IpAddr::V4(network.node_address()),
            Isolation::None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let door =
            TcpListener::bind((node_address, 0)).await.context("cannot listen for the API server on the node")?;
        let (tls, clients) = server.node_tls(NODE_NAME, node_address)?;
        let mut config = node_config(&settings, &client, network, broker, dns)?;
        config.kubelet = Some(KubeletAddress { address: node_address, port: door.local_addr()?.port() });
        let node = Node::start(config)?;
        let kubelet = tokio::spawn(kubelet::serve(door, tls, clients, &node));
        let local = Self {
            kubeconfig: server.kubeconfig().to_owned(),
            address: server.address(),
            client,
            server,
            controllers,
            stop_controllers,
            services,
            kubelet,
            node,
        };
        local.apply_all(&settings).await?;
        Ok(local)
    }

    async fn apply_all(&self, settings: &Settings) -> anyhow::Result<()> {
        if settings.demo {
            for Manifest { object, .. } in manifests::parse("the demo", demo::MANIFEST)? {
                apply(&self.client, &object).await?;
            }
        }
        for manifest in &settings.manifests {
            let applied = apply(&self.client, &manifest.object).await;
            applied.with_context(|| format!("cannot apply {}", manifest.origin))?;
        }
        Ok(())
    }

    /// The services that can be reached from this machine.
    pub(crate) fn endpoints(&self) -> LocalEndpoints {
        self.services.local_endpoints()
    }

    /// Ends everything in an orderly way: pods first, the API server last.
    pub(crate) async fn stop(self) {
        self.node.stop().await;
        self.kubelet.abort();
        drop(self.services);
        drop(self.stop_controllers);
        // Controllers that have panicked have stopped, too.
        let _ = self.controllers.await;
        self.server.stop().await;
    }
}

fn node_config(
    settings: &Settings,
    client: &Client,
    network: Network,
    broker: Broker,
    dns: Option<SocketAddr>,
) -> anyhow::Result<NodeConfig> {
    let folder = settings.data.join("node");
    let memory = isolation::memory_folder(settings.isolation, &settings.data.join("memory"))
        .context("cannot make a folder in memory for secrets")?;
    Ok(NodeConfig {
        name: NODE_NAME.to_owned(),
        client: client.clone(),
        isolation: settings.isolation,
        network,
        broker,
        images: ImageConfig {
            own_program: std::env::current_exe().context("the program cannot find itself")?,
            own_images: vec!["skep".to_owned()],
            own_commands: vec![("skep-demo/echo".to_owned(), vec!["demo".to_owned(), "echo".to_owned()])],
            map: settings.image_map.clone(),
            cache: settings.data.join("packages"),
        },
        dns: dns.map(|address| address.ip()),
        folder,
        memory,
        restarts: skep_node::BackoffRules::default(),
        kubelet: None,
    })
}

/// The data of the machine is nobody else's business.
fn make_private(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let made = fs::create_dir_all(folder).and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o711)));
    made.with_context(|| format!("cannot make the data folder {}", folder.display()))
}

fn busy(error: &BrokerError, address: SocketAddr) -> Hinted {
    let hinted = Hinted::new(error.to_string());
    match error {
        BrokerError::AddressInUse(_) => hinted
            .hint(format!("end the program that listens on port {}, perhaps another skep up", address.port()))
            .hint("or choose another address with --listen 127.0.0.1:PORT"),
        _ => hinted,
    }
}

/// The service that pods know the API server by.
fn api_service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": IpAddr::V4(API_ADDRESS),
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}],
        },
    })
}

/// Applies an object, on the server's side.
pub(crate) async fn apply(client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |member: &str| object[member].as_str().unwrap_or_default();
    let kind = kube::core::GroupVersionKind::try_from(kube::core::TypeMeta {
        api_version: text("apiVersion").to_owned(),
        kind: text("kind").to_owned(),
    })?;
    let (resource, capabilities) = kube::discovery::pinned_kind(client, &kind)
        .await
        .map_err(|_| Hinted::new(format!("the kind {} of {} is not known", kind.kind, kind.api_version())))?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let api: Api<DynamicObject> = match capabilities.scope {
        kube::discovery::Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
        kube::discovery::Scope::Cluster => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply(MANAGER).force();
    api.patch(name, &parameters, &Patch::Apply(object)).await.map_err(|error| match error {
        kube::Error::Api(status) => anyhow::Error::msg(status.message),
        other => other.into(),
    })?;
    Ok(())
}
