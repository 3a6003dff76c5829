//! Two clusters for kubectl: ours, with our server and our controllers, and a real one. Each has the same node.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::Client;
use skep_conformance::control_plane::{ControlPlane, binaries_or_skip};
use skep_conformance::kubectl::Kubectl;
use skep_conformance::node;
use skep_kube::auth::pki::Pki;
use skep_kube::auth::tls::{self, ClientCertificates};
use skep_kube::auth::tokens::TokenAuthority;
use skep_kube::controllers::{self, Controllers};
use skep_kube::server::Server;
use skep_kube::store::Store;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) struct Cluster {
    pub(crate) kubectl: Kubectl,
    // Dropped in this order: what talks to the server, then the server.
    _running: JoinSet<()>,
    _behind: Behind,
}

/// What goes away with the cluster.
enum Behind {
    Folder { _folder: TempDir },
    ControlPlane { _control_plane: Box<ControlPlane> },
}

impl Cluster {
    /// Our server with our controllers. Only kubectl is taken from the binaries.
    pub(crate) async fn ours_or_skip(test: &str) -> Option<Self> {
        let binaries = binaries_or_skip(test)?;
        let folder = tempfile::tempdir().unwrap();
        let (server, mut running, certificate) = serve(folder.path()).await;
        let controllers = Controllers::all().root_certificate(certificate);
        running.spawn(controllers::run(server.client(), controllers, std::future::pending()));
        let kubectl = kubectl(binaries.join("kubectl"), folder.path().join("kubeconfig"), folder.path());
        add_node(server.client(), &mut running).await;
        Some(Self { kubectl, _running: running, _behind: Behind::Folder { _folder: folder } })
    }

    /// A real server with the controllers and the scheduler of Kubernetes.
    pub(crate) async fn real_or_skip(test: &str) -> Option<Self> {
        let control_plane = ControlPlane::start_or_skip(test).await?;
        let program = PathBuf::from(control_plane.kubectl().get_program());
        let kubectl = kubectl(program, control_plane.admin_kubeconfig(), control_plane.folder());
        let mut running = JoinSet::new();
        add_node(control_plane.admin().await.unwrap(), &mut running).await;
        let behind = Behind::ControlPlane { _control_plane: Box::new(control_plane) };
        Some(Self { kubectl, _running: running, _behind: behind })
    }
}

fn kubectl(program: PathBuf, kubeconfig: PathBuf, folder: &Path) -> Kubectl {
    let home = folder.join("home");
    std::fs::create_dir(&home).unwrap();
    Kubectl::new(program, kubeconfig, home)
}

async fn add_node(client: Client, running: &mut JoinSet<()>) {
    node::join(client.clone()).await.unwrap();
    running.spawn(node::run(client.clone()));
    running.spawn(node::beat(client));
}

/// The server on a free port of the loopback interface, and the certificate of its authority.
async fn serve(folder: &Path) -> (Server, JoinSet<()>, String) {
    let pki = Pki::open(folder).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let clients = Arc::new(ClientCertificates::new(pki.authority_certificate()).unwrap());
    let identity = pki.server(&["localhost".to_owned()], &[IpAddr::V4(Ipv4Addr::LOCALHOST)]).unwrap();
    let tls = tls::server_config(&identity, &clients).unwrap();
    let tokens = TokenAuthority::new(pki.service_account_key().unwrap());
    let server = Server::new(Store::open(None).unwrap(), tokens, address.to_string()).await.unwrap();
    pki.write_kubeconfig(&folder.join("kubeconfig"), &format!("https://{address}")).unwrap();
    let mut running = JoinSet::new();
    let serving = server.clone();
    running.spawn(async move { serving.serve(listener, tls, clients, std::future::pending()).await });
    (server, running, pki.authority_certificate().to_owned())
}
