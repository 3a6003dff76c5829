//! The API server of the machine, on the host's loopback and on the network of the pods.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use parking_lot::Mutex;
use rustls::ServerConfig;
use skep_kube::auth::pki::Pki;
use skep_kube::auth::tls::{self, ClientCertificates};
use skep_kube::auth::tokens::TokenAuthority;
use skep_kube::server::{NodeClient, Server};
use skep_kube::store::Store;
use skep_node::isolation::Isolation;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::hint::Hinted;

pub(super) struct ApiServer {
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
    pub(super) async fn start(
        data: &Path,
        listener: std::net::TcpListener,
        isolation: Isolation,
    ) -> anyhow::Result<Self> {
        let store = Store::open(Some(&data.join("store")))
            .map_err(|error| Hinted::new(error.to_string()).hint(error.hint()))?;
        let pki = Pki::open(data)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let clients = Arc::new(ClientCertificates::new(pki.authority_certificate())?);
        let names = [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let mut addresses = vec![IpAddr::from([127, 0, 0, 1])];
        if isolation == Isolation::Namespaces {
            addresses.push(IpAddr::V4(super::API_ADDRESS));
        }
        let identity = pki.server(&names.map(str::to_owned), &addresses)?;
        let tls = tls::server_config(&identity, &clients)?;
        let tokens = TokenAuthority::new(pki.service_account_key()?);
        let to_nodes =
            NodeClient::new(pki.authority_certificate(), &pki.client("kube-apiserver", Some("system:masters"))?)?;
        let server = Server::new(store.clone(), tokens, address.to_string()).await?.with_nodes(to_nodes);
        let kubeconfig = data.join("kubeconfig");
        pki.write_kubeconfig(&kubeconfig, &format!("https://{address}"))?;
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
    pub(super) async fn serve_pods(&self, address: SocketAddr) -> anyhow::Result<()> {
        let listener = TcpListener::bind(address).await;
        self.serve(listener.with_context(|| format!("cannot listen on {address} for the pods"))?);
        Ok(())
    }

    fn serve(&self, listener: TcpListener) {
        let (server, tls, clients) = (self.server.clone(), self.tls.clone(), self.clients.clone());
        let stop = self.stop.clone().cancelled_owned();
        self.tasks.lock().spawn(async move { server.serve(listener, tls, clients, stop).await });
    }

    pub(super) fn client(&self) -> Client {
        self.server.client()
    }

    /// The certificate that pods check the server by.
    pub(super) fn authority(&self) -> &str {
        self.pki.authority_certificate()
    }

    /// What a node shows to those who talk to it, and how it judges what they show.
    pub(super) fn node_tls(
        &self,
        name: &str,
        address: IpAddr,
    ) -> anyhow::Result<(Arc<ServerConfig>, Arc<ClientCertificates>)> {
        let identity = self.pki.node(name, &[address])?;
        Ok((tls::server_config(&identity, &self.clients)?, self.clients.clone()))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        let mut tasks = self.tasks.into_inner();
        while tasks.join_next().await.is_some() {}
        self.store.close().await;
    }
}
