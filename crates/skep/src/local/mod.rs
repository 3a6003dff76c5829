//! Everything on one machine: API server, controllers, the operator, a node, and the objects that a person applies.

mod demo;
mod manifests;
pub(crate) mod pulls;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::Service;
use kube::api::DeleteParams;
use kube::runtime::wait::await_condition;
use kube::runtime::wait::conditions::is_crd_established;
use kube::{Api, Client};
use serde_json::{Value, json};
use skep_kube::controllers::{self, Controllers, Storage};
use skep_node::broker::{Broker, BrokerError};
use skep_node::image::ImageMap;
use skep_node::isolation::{self, Isolation};
use skep_node::member::{Member, MemberConfig};
use skep_node::network::{Network, NetworkConfig};
use skep_operator::operator::Operator;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::api_server::ApiServer;
use crate::data_folder::DataFolder;
use crate::endpoint::Caller;
use crate::hint::Hinted;
use crate::machine;
use crate::objects::Place;
use crate::service_range::Chosen;
pub(crate) use manifests::{Manifest, read};

const NODE_NAME: &str = "skep";

/// What to start, and where.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) data: DataFolder,
    pub(crate) listen: SocketAddr,
    pub(crate) isolation: Isolation,
    pub(crate) pod_range: Ipv4Net,
    pub(crate) services: Chosen,
    pub(crate) manifests: Vec<Manifest>,
    /// Whether there is a demo where nothing else was ever applied.
    pub(crate) demo: bool,
    pub(crate) image_map: ImageMap,
    /// Further images of Skep itself.
    pub(crate) own_images: Vec<String>,
}

/// A machine that runs.
pub(crate) struct Local {
    pub(crate) client: Client,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) address: SocketAddr,
    server: ApiServer,
    controllers: JoinHandle<()>,
    stop_controllers: oneshot::Sender<()>,
    operator: Operator,
    member: Member,
}

impl Local {
    pub(crate) async fn start(settings: Settings) -> anyhow::Result<Self> {
        let broker = Broker::connect().context("cannot reach the process outside of the namespaces")?;
        let listener = broker.listen(settings.listen).await.map_err(|error| busy(&error, settings.listen))?;
        let is_new = settings.data.is_new()?;
        let server = ApiServer::start(settings.data.path(), listener, &[], settings.services).await?;
        let client = server.client();
        let ranges = NetworkConfig { pod_range: settings.pod_range, service_range: settings.services.range() };
        let network = Network::start(settings.isolation, ranges).await?;
        let addresses = settings.services.addresses();
        let has_services = settings.isolation == Isolation::Namespaces;
        if has_services {
            server.serve_pods(SocketAddr::from((addresses.api_server(), 443))).await?;
        }
        offer_api_server(&client, addresses.api_server()).await?;
        install_kinds(&client).await?;
        let (stop_controllers, stopped) = oneshot::channel::<()>();
        let storage = Storage {
            class: "standard".to_owned(),
            provisioner: "skep.dev/folder".to_owned(),
            folder: settings.data.volumes(),
        };
        let all = Controllers::all().root_certificate(server.authority()).storage(storage);
        let controllers = tokio::spawn(controllers::run(client.clone(), all, async {
            // A sender that is gone means the same.
            let _ = stopped.await;
        }));
        let settings_of_operator = skep_operator::settings::Settings {
            handshake: Some(Arc::new(Caller)),
            ..skep_operator::settings::Settings::default()
        };
        let operator = Operator::start(client.clone(), &settings_of_operator, Arc::default());
        let dns = has_services.then_some(SocketAddr::from((addresses.name_server(), 53)));
        let node_address = match settings.isolation {
            Isolation::Namespaces => IpAddr::V4(network.node_address()),
            Isolation::None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let listener =
            TcpListener::bind((node_address, 0)).await.context("cannot listen for the API server on the node")?;
        let memory = isolation::memory_folder(settings.isolation, &settings.data.memory())
            .context("cannot make a folder in memory for secrets")?;
        let member = Member::start(MemberConfig {
            name: NODE_NAME.to_owned(),
            client: client.clone(),
            isolation: settings.isolation,
            network,
            broker,
            images: machine::images(&settings.data, settings.image_map.clone(), &settings.own_images)?,
            dns,
            // With namespaces it is where its service is.
            api_server: (!has_services).then(|| server.address()),
            local_group: Some(skep_api::kind::GROUP),
            folder: settings.data.node(),
            memory,
            // Whoever reads the kubeconfig or the keys there may do everything.
            hidden: vec![settings.data.path().to_owned()],
            restarts: skep_node::BackoffRules::default(),
            door: server.node_door(NODE_NAME, node_address, listener)?,
        })
        .await?;
        machine::tell_offline(&member);
        let local = Self {
            kubeconfig: server.kubeconfig().to_owned(),
            address: server.address(),
            client,
            server,
            controllers,
            stop_controllers,
            operator,
            member,
        };
        local.apply_all(&settings, is_new).await?;
        Ok(local)
    }

    async fn apply_all(&self, settings: &Settings, is_new: bool) -> anyhow::Result<()> {
        if settings.demo && is_new {
            for Manifest { object, .. } in manifests::parse("the demo", demo::MANIFEST)? {
                let place = Place::find(&self.client, &object, "default").await?;
                // A first start that was cut short may have been long enough for somebody else's objects.
                if place.api.get_opt(&place.name).await?.is_none() {
                    place.apply(&object).await?;
                }
            }
        }
        manifests::apply(&self.client, &settings.manifests).await?;
        settings.data.tell_begun()
    }

    /// Ends everything in an orderly way: pods first, the API server last.
    pub(crate) async fn stop(self) {
        // Nobody is to be told that pods end.
        drop(self.operator);
        self.member.stop().await;
        drop(self.stop_controllers);
        // Controllers that have panicked have stopped, too.
        let _ = self.controllers.await;
        self.server.stop().await;
    }
}

/// All at once: they are large, and a first start waits until they are served.
async fn install_kinds(client: &Client) -> anyhow::Result<()> {
    let mut applying = JoinSet::new();
    for entry in skep_api::crd::ALL {
        let client = client.clone();
        applying.spawn(async move {
            apply(&client, &entry.document()).await?;
            await_condition(Api::all(client), &entry.definition.crd_name(), is_crd_established()).await?;
            anyhow::Ok(())
        });
    }
    while let Some(applied) = applying.join_next().await {
        applied??;
    }
    Ok(())
}

async fn apply(client: &Client, object: &Value) -> anyhow::Result<()> {
    Place::find(client, object, "default").await?.apply(object).await.map(drop)
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

/// Makes the service that pods know the API server by. One at another address, from before the range was changed, makes
/// room: a service cannot move.
async fn offer_api_server(client: &Client, address: Ipv4Addr) -> anyhow::Result<()> {
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let found = services.get_opt("kubernetes").await?.and_then(|service| service.spec?.cluster_ip);
    if found.is_some_and(|found| found != address.to_string()) {
        services.delete("kubernetes", &DeleteParams::default()).await?;
    }
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "kubernetes", "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": address,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443}],
        },
    });
    apply(client, &service).await
}
