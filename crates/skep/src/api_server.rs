//! The embedded API server as the commands run it: its data in one folder, its authority, and where it listens.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::Client;
use parking_lot::Mutex;
use rustls::ServerConfig;
use skep_kube::auth::pki::{self, Pki, PkiError};
use skep_kube::auth::tls::{self, ClientCertificates};
use skep_kube::auth::tokens::TokenAuthority;
use skep_kube::server::{NodeClient, Server};
use skep_kube::store::{OpenError, Options, Store};
use skep_node::member::Door;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::data_folder::STORE;
use crate::hint::Hinted;
use crate::service_range;

/// How long a store may belong to somebody else.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// What every API server is called, by those who run it and by pods.
const NAMES: [&str; 5] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// A server that runs. Dropping it without a stop loses nothing that was acknowledged.
pub(crate) struct ApiServer {
    server: Server,
    store: Store,
    pki: Pki,
    address: SocketAddr,
    kubeconfig: PathBuf,
    tls: Arc<ServerConfig>,
    clients: Arc<ClientCertificates>,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

impl ApiServer {
    /// Serves the data in a folder at an address; `names` are what it is called besides the usual.
    ///
    /// Everything is looked at before anything is written, so that a folder that is refused stays as it is.
    pub(crate) async fn start(
        data: &Path,
        listener: std::net::TcpListener,
        names: &[String],
        services: service_range::Chosen,
    ) -> anyhow::Result<Self> {
        let pki = Pki::prepare(data).map_err(hinted)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let clients = Arc::new(ClientCertificates::new(pki.authority_certificate())?);
        let for_pods = IpAddr::V4(services.addresses().api_server());
        let tls = certificate(&pki, &[for_pods, address.ip()], names, &clients)?;
        let tokens = TokenAuthority::new(pki.service_account_key().map_err(hinted)?);
        let to_nodes =
            NodeClient::new(pki.authority_certificate(), &pki.client("kube-apiserver", Some("system:masters"))?)?;
        // It is told to people, who may be in another folder by then.
        let kubeconfig = std::path::absolute(data)?.join("kubeconfig");
        pki.write_kubeconfig(&kubeconfig, &format!("https://{}", reachable(address))).map_err(hinted)?;
        let store = open(data, &pki).await?;
        let server = Server::new(store.clone(), tokens, address.to_string()).await?.with_nodes(to_nodes);
        let server = server.with_service_range(services.addresses());
        services.settle(data, &server.client()).await?;
        pki.save().map_err(hinted)?;
        let started = Self {
            server,
            store,
            pki,
            address,
            kubeconfig,
            tls,
            clients,
            stop: CancellationToken::new(),
            tasks: Mutex::default(),
        };
        started.serve(listener);
        Ok(started)
    }

    /// Serves pods, too, at an address of theirs.
    pub(crate) async fn serve_pods(&self, address: SocketAddr) -> anyhow::Result<()> {
        let listener = TcpListener::bind(address).await;
        self.serve(listener.with_context(|| format!("cannot listen on {address} for the pods"))?);
        Ok(())
    }

    fn serve(&self, listener: TcpListener) {
        let (server, tls, clients) = (self.server.clone(), self.tls.clone(), self.clients.clone());
        let stop = self.stop.clone().cancelled_owned();
        self.tasks.lock().spawn(async move { server.serve(listener, tls, clients, stop).await });
    }

    pub(crate) fn client(&self) -> Client {
        self.server.client()
    }

    /// The certificate that pods check the server by.
    pub(crate) fn authority(&self) -> &str {
        self.pki.authority_certificate()
    }

    /// Where a node is looked into: what it shows, and whom it lets in.
    pub(crate) fn node_door(&self, name: &str, address: IpAddr, listener: TcpListener) -> anyhow::Result<Door> {
        let identity = self.pki.node(name, &[address])?;
        Ok(Door { listener, address, identity, clients: self.pki.authority_certificate().to_owned() })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let mut tasks = self.tasks.into_inner();
        while tasks.join_next().await.is_some() {}
        self.store.close().await;
    }
}

/// Opens the store. One whose process was killed a moment ago is given time to be let go of. It is made before the
/// keys are, so that one that is not there beside keys was lost.
async fn open(data: &Path, pki: &Pki) -> Result<Store, Hinted> {
    let (folder, begun) = (data.join(STORE), Instant::now());
    let options = Options { must_exist: !pki.is_new(), ..Options::default() };
    loop {
        let error = match Store::open_with(Some(&folder), options) {
            Ok(store) => return Ok(store),
            Err(OpenError::Locked { .. }) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => error,
        };
        let keys = pki::folder_in(data);
        return Err(match &error {
            OpenError::Missing { .. } => Hinted::new(format!("{error}, and {} is from before", keys.display())),
            _ => Hinted::new(error.to_string()),
        }
        .hint(error.hint()));
    }
}

fn certificate(
    pki: &Pki,
    listening: &[IpAddr],
    further: &[String],
    clients: &ClientCertificates,
) -> anyhow::Result<Arc<ServerConfig>> {
    let (names, addresses) = called(listening, further);
    let identity = pki.server(&names, &addresses).map_err(hinted)?;
    Ok(tls::server_config(&identity, clients)?)
}

/// What to do when there are no certificates.
fn hinted(error: PkiError) -> anyhow::Error {
    let hint = match error {
        PkiError::Sign { .. } => "every --tls-san must be the name of a host, or an address",
        PkiError::Read { .. } | PkiError::Write { .. } => "check the permissions, and whether the disk is full",
        other => return other.into(),
    };
    Hinted::new(error.to_string()).hint(hint).into()
}

/// The names and addresses of the server: those that it always has, those it listens on, and further ones.
fn called(listening: &[IpAddr], further: &[String]) -> (Vec<String>, Vec<IpAddr>) {
    let mut names: Vec<String> = NAMES.map(str::to_owned).into();
    let mut addresses = vec![IpAddr::from([127, 0, 0, 1])];
    addresses.extend(listening.iter().filter(|address| !address.is_unspecified()));
    for name in further {
        match name.parse() {
            Ok(address) => addresses.push(address),
            Err(_) => names.push(name.clone()),
        }
    }
    (names, addresses)
}

/// An address that a client on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_what_its_flags_say() {
        let everywhere = IpAddr::from([0, 0, 0, 0]);
        let (names, addresses) = called(&[everywhere], &["hive.example.com".to_owned(), "192.0.2.7".to_owned()]);
        assert_eq!(names.last().map(String::as_str), Some("hive.example.com"));
        assert_eq!(addresses.last(), Some(&IpAddr::from([192, 0, 2, 7])));
        assert!(!addresses.contains(&everywhere));
    }
}
