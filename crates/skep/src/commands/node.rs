//! `skep node`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::{Api, Client};
use skep_kube::auth::pki::{Identity, Pki};
use skep_node::broker::{Broker, BrokerError};
use skep_node::image::ImageMap;
use skep_node::isolation::{self, Isolation};
use skep_node::member::{self, Door, Member, MemberConfig};
use skep_node::network::{self, Network, NetworkConfig};
use tokio::net::TcpListener;

use crate::cli::{IsolationChoice, NodeArgs};
use crate::cluster::Cluster;
use crate::data_folder::DataFolder;
use crate::hint::Hinted;
use crate::stop::Stop;
use crate::{enclosed, machine};

/// Where the name server of the pods is, on the address of the node.
const DNS_PORT: u16 = 53;

/// Which cluster to join, and as what.
#[derive(Debug)]
pub struct Settings {
    kubeconfig: PathBuf,
    context: Option<String>,
    name: String,
    data: DataFolder,
    listen: SocketAddr,
    /// Files of the certificate and its key.
    tls: Option<(PathBuf, PathBuf)>,
    client_ca: Option<PathBuf>,
    pod_range: Ipv4Net,
    service_range: Option<Ipv4Net>,
    image_map: ImageMap,
    own_images: Vec<String>,
    isolation: IsolationChoice,
}

impl TryFrom<NodeArgs> for Settings {
    type Error = anyhow::Error;

    fn try_from(args: NodeArgs) -> anyhow::Result<Self> {
        if args.listen.ip().is_unspecified() {
            return Err(Hinted::new(format!("{} is no address that an API server could call", args.listen.ip()))
                .hint("name the address of this machine that the API server reaches, such as --listen 192.0.2.7:10250")
                .into());
        }
        let name = match args.name {
            Some(name) => name,
            None => own_name()?,
        };
        Ok(Self {
            kubeconfig: args.kubeconfig,
            context: args.context,
            data: DataFolder::of_node(args.data_dir, &name)?,
            name,
            listen: args.listen,
            tls: args.tls_cert.zip(args.tls_key),
            client_ca: args.client_ca,
            pod_range: args.pod_range,
            service_range: args.service_range,
            image_map: args.image_map.as_deref().map(ImageMap::read).transpose()?.unwrap_or_default(),
            own_images: args.own_image,
            isolation: args.isolation,
        })
    }
}

/// The name of this machine, as a node may be called.
fn own_name() -> anyhow::Result<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").context("this machine does not say its name")?;
    Ok(name.trim().to_lowercase())
}

pub(super) fn run(settings: Settings) -> anyhow::Result<()> {
    let data = settings.data.clone();
    enclosed::run(settings.isolation, &data, |isolation| serve(settings, isolation))
}

async fn serve(settings: Settings, isolation: Isolation) -> anyhow::Result<()> {
    let mut stop = Stop::new()?;
    if isolation == Isolation::None {
        eprintln!(
            "warning: without namespaces pods are on the loopback of this machine, where nobody else reaches them"
        );
    }
    let join = async {
        let joined = Joined::start(&settings, isolation).await?;
        joined.member.registered().await;
        anyhow::Ok(joined)
    };
    let joined = tokio::select! {
        joined = join => joined?,
        () = stop.asked() => return Ok(()),
    };
    eprintln!("node {} has joined {}", settings.name, joined.cluster.url);
    machine::tell_offline(&joined.member);
    stop.asked().await;
    stop.orderly(joined.member.stop()).await;
    Ok(())
}

/// A member of a cluster, and what it needs as long as it is one.
struct Joined {
    member: Member,
    cluster: Cluster,
}

impl Joined {
    async fn start(settings: &Settings, isolation: Isolation) -> anyhow::Result<Self> {
        let broker = Broker::connect().context("cannot reach the process outside of the namespaces")?;
        // The way to the API server begins there, and what it says decides about the rest of the network.
        network::switch_on_loopback(isolation).await?;
        let cluster = Cluster::reach(&settings.kubeconfig, settings.context.as_deref(), &broker).await?;
        check_rights(&cluster, &settings.name).await?;
        let ranges = NetworkConfig {
            pod_range: settings.pod_range,
            service_range: service_range(settings, &cluster.client).await?,
        };
        let clients = client_authority(settings, &cluster.client).await?;
        let network = Network::start(isolation, ranges).await?;
        let memory = isolation::memory_folder(isolation, &settings.data.memory())
            .context("cannot make a folder in memory for secrets")?;
        let dns = SocketAddr::from((network.node_address(), DNS_PORT));
        let door = Door {
            listener: listen(&broker, settings.listen).await?,
            address: settings.listen.ip(),
            identity: identity(settings)?,
            clients,
        };
        let member = Member::start(MemberConfig {
            name: settings.name.clone(),
            client: cluster.client.clone(),
            isolation,
            network,
            broker,
            images: machine::images(&settings.data, settings.image_map.clone(), &settings.own_images)?,
            dns: (isolation == Isolation::Namespaces).then_some(dns),
            api_server: Some(cluster.address()),
            local_group: None,
            folder: settings.data.node(),
            memory,
            hidden: vec![settings.data.path().to_owned()],
            restarts: skep_node::BackoffRules::default(),
            door,
        })
        .await?;
        Ok(Self { member, cluster })
    }
}

async fn check_rights(cluster: &Cluster, name: &str) -> anyhow::Result<()> {
    let missing = member::missing(&cluster.client, name).await;
    let missing = missing.with_context(|| format!("cannot ask the API server at {}", cluster.url))?;
    if missing.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = missing.iter().map(ToString::to_string).collect();
    Err(Hinted::new(format!("the user of the kubeconfig may not be node {name:?}; it lacks: {}", list.join(", ")))
        .hint("use an administrator's kubeconfig, or give the node one of its own and the roles of deploy/node/roles.yaml (docs/node.md)")
        .into())
}

/// The range that the API server gives services addresses of.
async fn service_range(settings: &Settings, client: &Client) -> anyhow::Result<Ipv4Net> {
    if let Some(range) = settings.service_range {
        return Ok(range);
    }
    // Servers before 1.33 do not tell, and users may not be allowed to ask.
    let told = Api::<ServiceCIDR>::all(client.clone()).get_opt("kubernetes").await.ok().flatten();
    let ranges = told.and_then(|object| object.spec).and_then(|spec| spec.cidrs).unwrap_or_default();
    let range = ranges.iter().find_map(|range| range.parse().ok());
    Ok(range.map_or_else(|| machine::SERVICE_RANGE.parse(), Ok)?)
}

/// Who signs the certificates of those that may look into the node.
async fn client_authority(settings: &Settings, client: &Client) -> anyhow::Result<String> {
    const NAME: &str = "extension-apiserver-authentication";
    if let Some(path) = &settings.client_ca {
        return fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let told = maps.get_opt(NAME).await.ok().flatten();
    let authority = told.and_then(|map| map.data).and_then(|mut data| data.remove("client-ca-file"));
    authority.ok_or_else(|| {
        Hinted::new(format!("the ConfigMap kube-system/{NAME} does not tell the authority of the API server's clients"))
            .hint("name its certificate with --client-ca FILE (the file of kube-apiserver's --client-ca-file)")
            .into()
    })
}

async fn listen(broker: &Broker, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = broker.listen_for_others(address).await.map_err(|error| {
        let hinted = Hinted::new(error.to_string());
        match error {
            BrokerError::AddressInUse(_) => hinted.hint("choose another port with --listen ADDRESS:PORT"),
            _ => hinted.hint("--listen must name an address of this machine"),
        }
    })?;
    listener.set_nonblocking(true)?;
    Ok(TcpListener::from_std(listener)?)
}

/// What the node shows to the API server: what it was given, or what an authority of its own says.
fn identity(settings: &Settings) -> anyhow::Result<Identity> {
    if let Some((certificate, key)) = &settings.tls {
        let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        return Ok(Identity::new(read(certificate)?, read(key)?));
    }
    let address: IpAddr = settings.listen.ip();
    Ok(Pki::open(settings.data.path())?.node(&settings.name, &[address])?)
}
