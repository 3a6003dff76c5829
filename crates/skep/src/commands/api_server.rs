//! `skep api-server`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::ServerConfig;
use skep_kube::auth::pki::Pki;
use skep_kube::auth::tls::{self, ClientCertificates};
use skep_kube::auth::tokens::TokenAuthority;
use skep_kube::server::Server;
use skep_kube::store::Store;
use tokio::net::TcpListener;

use crate::cli::ApiServerArgs;
use crate::hint::Hinted;
use crate::stop;

/// Where the server keeps its data and where it listens.
#[derive(Debug)]
pub struct Settings {
    data: PathBuf,
    listen: SocketAddr,
}

impl From<ApiServerArgs> for Settings {
    fn from(args: ApiServerArgs) -> Self {
        Self { data: args.data_dir, listen: args.listen }
    }
}

pub(super) fn run(settings: &Settings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    fs::create_dir_all(&settings.data).with_context(|| format!("cannot create {}", settings.data.display()))?;
    let store = Store::open(Some(&settings.data.join("store")))
        .map_err(|error| Hinted::new(error.to_string()).hint(error.hint()))?;
    let pki = Pki::open(&settings.data.join("pki"))?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        Hinted::new(format!("cannot listen on {}: {error}", settings.listen))
            .hint("choose another address with --listen, or port 0 for any that is free")
    })?;
    let address = listener.local_addr()?;
    let clients = Arc::new(ClientCertificates::new(pki.authority_certificate())?);
    let tls = certificate(&pki, address.ip(), &clients)?;
    let tokens = TokenAuthority::new(pki.service_account_key()?);
    let server = Server::new(store.clone(), tokens, address.to_string()).await?;
    let kubeconfig = settings.data.join("kubeconfig");
    pki.write_kubeconfig(&kubeconfig, &format!("https://{}", reachable(address)))?;
    eprintln!("serving https://{address}; export KUBECONFIG={}", kubeconfig.display());
    server.serve(listener, tls, clients, stop::asked()?).await;
    store.close().await;
    Ok(())
}

fn certificate(pki: &Pki, address: IpAddr, clients: &ClientCertificates) -> anyhow::Result<Arc<ServerConfig>> {
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned);
    let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 96, 0, 1])];
    if !address.is_unspecified() && !addresses.contains(&address) {
        addresses.push(address);
    }
    let identity = pki.server(&names, &addresses)?;
    Ok(tls::server_config(&identity, clients)?)
}

/// An address that a client on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}
