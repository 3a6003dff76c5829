//! A cluster of one node that runs pods: with our API server, or with a real one.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use skep_conformance::control_plane::{ControlPlane, binaries_or_skip};
use skep_kube::auth::pki::{Identity, Pki};
use skep_kube::auth::tls::{self, ClientCertificates};
use skep_kube::auth::tokens::TokenAuthority;
use skep_kube::controllers::{self, Controllers, Storage};
use skep_kube::server::{NodeClient, Server};
use skep_kube::store::Store;
use skep_node::BackoffRules;
use skep_node::broker::Broker;
use skep_node::image::{ImageConfig, ImageMap};
use skep_node::isolation::Isolation;
use skep_node::member::{Door, Member, MemberConfig};
use skep_node::network::{Network, NetworkConfig};
use skep_node::node::{Node, NodeConfig};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{Mutex, OnceCell};
use tokio::task::JoinSet;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The image of programs that are in every container: the machine's own.
pub const SHELL: &str = "shell";
/// The image of this test program.
pub const SELF: &str = "self";

/// Whose API server it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Ours,
    Real,
}

pub struct Cluster {
    pub client: Client,
    /// The name of the node.
    pub node: String,
    /// Where the node's own API is, and who is trusted there.
    pub kubelet: std::net::SocketAddr,
    pub authority: String,
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    // Dropped in this order: what runs, then what it uses.
    _member: Member,
    _running: JoinSet<()>,
    _control_plane: Option<ControlPlane>,
    folder: TempDir,
}

/// Who the node of a cluster is.
struct Joining {
    name: &'static str,
    /// With the rights of the node.
    client: Client,
    authority: String,
    identity: Identity,
    dns: Ipv4Addr,
}

/// The clusters that all tests share; none of a kind that cannot be had here.
static CLUSTERS: Mutex<Vec<(Kind, Option<Arc<Cluster>>)>> = Mutex::const_new(Vec::new());

/// The cluster of a kind.
pub async fn of_kind(kind: Kind) -> Option<Arc<Cluster>> {
    let mut clusters = CLUSTERS.lock().await;
    if let Some((_, cluster)) = clusters.iter().find(|(known, _)| *known == kind) {
        return cluster.clone();
    }
    let cluster = match kind {
        Kind::Ours => ours().await,
        Kind::Real => real().await,
    };
    clusters.push((kind, cluster.clone()));
    cluster
}

/// Ends all clusters and removes what they have on disk.
pub async fn end() {
    CLUSTERS.lock().await.clear();
}

async fn ours() -> Option<Arc<Cluster>> {
    let binaries = binaries_or_skip("kubelet on our server")?;
    network().await;
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::open(&folder.path().join("data")).unwrap();
    let authority = pki.authority_certificate().to_owned();
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let clients = Arc::new(ClientCertificates::new(&authority).unwrap());
    let identity = pki.server(&["localhost".to_owned()], &[LOOPBACK]).unwrap();
    let tls = tls::server_config(&identity, &clients).unwrap();
    let tokens = TokenAuthority::new(pki.service_account_key().unwrap());
    let to_nodes = pki.client("kube-apiserver", Some("system:masters")).unwrap();
    let server = Server::new(Store::open(None).unwrap(), tokens, address.to_string()).await.unwrap();
    let server = server.with_nodes(NodeClient::new(&authority, &to_nodes).unwrap());
    let kubeconfig = folder.path().join("kubeconfig");
    pki.write_kubeconfig(&kubeconfig, &format!("https://{address}")).unwrap();
    let mut running = JoinSet::new();
    let storage = Storage {
        class: "standard".to_owned(),
        provisioner: "skep.dev/folder".to_owned(),
        folder: folder.path().join("volumes"),
    };
    let controllers = Controllers::all().root_certificate(authority.clone()).storage(storage);
    running.spawn(controllers::run(server.client(), controllers, std::future::pending()));
    let client = server.client();
    running.spawn(async move { server.serve(listener, tls, clients, std::future::pending()).await });
    let identity = pki.node("bee", &[LOOPBACK]).unwrap();
    let dns = Ipv4Addr::new(10, 96, 0, 10);
    let joining = Joining { name: "bee", client: client.clone(), authority, identity, dns };
    let (kubectl, parts) = (binaries.join("kubectl"), (folder, running, None));
    Some(Arc::new(Cluster::with_node(client, joining, kubectl, kubeconfig, parts).await))
}

async fn real() -> Option<Arc<Cluster>> {
    network().await;
    let control_plane = ControlPlane::start_or_skip("kubelet on a real server").await?;
    let client = control_plane.admin().await.unwrap();
    let node = control_plane.node("wasp").unwrap();
    // What is documented to suffice has to: the node is nobody else here.
    let roles = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/node/roles.yaml");
    assert!(control_plane.kubectl().args(["apply", "-f", roles]).status().unwrap().success());
    let joining = Joining {
        name: "wasp",
        client: client_of(&control_plane.kubeconfig(&node)).await,
        authority: control_plane.authority().certificate(),
        identity: Identity::new(node.certificate, node.key),
        dns: Ipv4Addr::new(10, 0, 0, 10),
    };
    assert_eq!(skep_node::member::missing(&joining.client, joining.name).await.unwrap(), []);
    let (kubectl, kubeconfig) = (control_plane.kubectl().get_program().into(), control_plane.admin_kubeconfig());
    let parts = (tempfile::tempdir().unwrap(), JoinSet::new(), Some(control_plane));
    Some(Arc::new(Cluster::with_node(client, joining, kubectl, kubeconfig, parts).await))
}

async fn client_of(kubeconfig: &str) -> Client {
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(kubeconfig).unwrap(), &options).await.unwrap();
    Client::try_from(config).unwrap()
}

/// The network that both nodes use. It has to be there before anything can listen on the loopback.
pub async fn network() -> Network {
    static NETWORK: OnceCell<Network> = OnceCell::const_new();
    let start = || async {
        let config = NetworkConfig {
            pod_range: "10.244.0.0/16".parse().unwrap(),
            // Both servers have theirs in it.
            service_range: "10.0.0.0/9".parse().unwrap(),
        };
        Network::start(Isolation::Namespaces, config).await.unwrap()
    };
    NETWORK.get_or_init(start).await.clone()
}

/// The way out of the namespaces, of which there is one.
pub fn broker() -> Broker {
    static BROKER: LazyLock<Broker> = LazyLock::new(|| Broker::connect().unwrap());
    BROKER.clone()
}

fn images(folder: &Path) -> ImageConfig {
    let map = folder.join("images.yaml");
    let text = format!("images: [{{image: {SHELL}, command: [/bin/sh]}}]");
    std::fs::write(&map, text).unwrap();
    ImageConfig {
        own_program: std::env::current_exe().unwrap(),
        own_images: vec![SELF.to_owned()],
        own_commands: Vec::new(),
        map: ImageMap::read(&map).unwrap(),
        cache: folder.join("cache"),
    }
}

impl Cluster {
    async fn with_node(
        client: Client,
        joining: Joining,
        kubectl: PathBuf,
        kubeconfig: PathBuf,
        (folder, running, control_plane): (TempDir, JoinSet<()>, Option<ControlPlane>),
    ) -> Self {
        let Joining { name, client: own, authority, identity, dns } = joining;
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let kubelet = listener.local_addr().unwrap();
        let member = Member::start(MemberConfig {
            name: name.to_owned(),
            client: own,
            isolation: Isolation::Namespaces,
            network: network().await,
            broker: broker(),
            images: images(folder.path()),
            dns: Some((dns, 53).into()),
            api_server: None,
            local_group: None,
            folder: folder.path().join("node"),
            memory: folder.path().join("memory"),
            hidden: Vec::new(),
            restarts: BackoffRules::default(),
            door: Door { listener, address: LOOPBACK, identity, clients: authority.clone() },
        });
        Self {
            client,
            node: name.to_owned(),
            kubelet,
            authority,
            kubectl,
            kubeconfig,
            _member: member.await.unwrap(),
            _running: running,
            _control_plane: control_plane,
            folder,
        }
    }

    /// Where everything of the cluster is, the node in `node` and its packages in `cache`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The certificates of our server.
    pub fn pki(&self) -> Pki {
        Pki::open(&self.folder.path().join("data")).unwrap()
    }

    /// kubectl with these arguments; it is killed when it is dropped.
    pub fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments).kill_on_drop(true);
        command.env("HOME", self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What kubectl says, and how it ends.
    pub async fn run(&self, arguments: &[&str]) -> Said {
        Said::of(&self.kubectl(arguments).output().await.unwrap())
    }

    /// Another node of the cluster, with nothing but pods; `folder` is what it keeps between its lives.
    pub async fn another_node(&self, name: &str, folder: &Path) -> Node {
        let config = NodeConfig {
            name: name.to_owned(),
            client: self.client.clone(),
            isolation: Isolation::Namespaces,
            network: network().await,
            broker: broker(),
            images: images(folder),
            dns: None,
            api_server: None,
            folder: folder.join("node"),
            memory: folder.join("memory"),
            hidden: Vec::new(),
            restarts: BackoffRules::default(),
            kubelet: None,
        };
        // Pods that are not meant for it stay away.
        let object = json!({"metadata": {"name": name}, "spec": {"unschedulable": true}});
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client.clone());
        if nodes.get_opt(name).await.unwrap().is_none() {
            nodes.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        }
        let node = Node::start(config).unwrap();
        node.registered().await;
        node
    }

    pub async fn apply(&self, object: &Value) {
        let mut kubectl = self.kubectl(&["apply", "-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
        kubectl.stdin.take().unwrap().write_all(object.to_string().as_bytes()).await.unwrap();
        let said = Said::of(&kubectl.wait_with_output().await.unwrap());
        assert_eq!(said.code, 0, "{said:?}");
    }

    /// A pod with one container that runs a script, once it is ready, or over.
    pub async fn script(&self, name: &str, script: &str) {
        self.pod(name, json!([{"name": "main", "image": SHELL, "command": ["/bin/sh", "-c", script]}])).await;
        self.settled(name).await;
    }

    pub async fn pod(&self, name: &str, containers: Value) {
        self.labelled_pod(name, &json!({}), containers).await;
    }

    pub async fn labelled_pod(&self, name: &str, labels: &Value, containers: Value) {
        self.create(&json!({"name": name, "labels": labels}), containers, json!({})).await;
    }

    /// A pod with further members in its specification.
    pub async fn pod_with(&self, name: &str, containers: Value, more: Value) {
        self.create(&json!({"name": name}), containers, more).await;
    }

    async fn create(&self, metadata: &Value, containers: Value, more: Value) {
        let mut spec = json!({"nodeName": self.node, "restartPolicy": "Never", "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0, "containers": containers});
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    pub async fn settled(&self, name: &str) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let settled = kube::runtime::wait::await_condition(pods, name, |pod: Option<&Pod>| {
            let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
            matches!(phase, Some("Running" | "Succeeded" | "Failed"))
        });
        settled.await.unwrap();
    }
}

/// What a command said.
#[derive(Debug, PartialEq, Eq)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Said {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { out: text(&output.stdout), err: text(&output.stderr), code: output.status.code().unwrap_or(-1) }
    }
}
