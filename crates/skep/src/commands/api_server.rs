//! `skep api-server`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::ServerConfig;
use skep_kube::auth::pki::{Pki, PkiError};
use skep_kube::auth::tls::{self, ClientCertificates};
use skep_kube::auth::tokens::TokenAuthority;
use skep_kube::server::{NodeClient, Server};
use skep_kube::store::Store;
use tokio::net::TcpListener;

use crate::cli::ApiServerArgs;
use crate::hint::Hinted;
use crate::stop;

/// Where the server keeps its data, where it listens, and what else it is called.
#[derive(Debug)]
pub struct Settings {
    data: PathBuf,
    listen: SocketAddr,
    names: Vec<String>,
}

impl From<ApiServerArgs> for Settings {
    fn from(args: ApiServerArgs) -> Self {
        Self { data: args.data_dir, listen: args.listen, names: args.tls_names }
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
    let pki = Pki::open(&settings.data)?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        Hinted::new(format!("cannot listen on {}: {error}", settings.listen))
            .hint("choose another address with --listen, or port 0 for any that is free")
    })?;
    let address = listener.local_addr()?;
    let clients = Arc::new(ClientCertificates::new(pki.authority_certificate())?);
    let tls = certificate(&pki, address.ip(), &settings.names, &clients)?;
    let tokens = TokenAuthority::new(pki.service_account_key()?);
    let server = Server::new(store.clone(), tokens, address.to_string()).await?;
    let to_nodes = pki.client("kube-apiserver", Some("system:masters"))?;
    let server = server.with_nodes(NodeClient::new(pki.authority_certificate(), &to_nodes)?);
    let kubeconfig = settings.data.join("kubeconfig");
    pki.write_kubeconfig(&kubeconfig, &format!("https://{}", reachable(address)))?;
    eprintln!("serving https://{address}; export KUBECONFIG={}", kubeconfig.display());
    server.serve(listener, tls, clients, stop::asked()?).await;
    store.close().await;
    Ok(())
}

fn certificate(
    pki: &Pki,
    address: IpAddr,
    further: &[String],
    clients: &ClientCertificates,
) -> anyhow::Result<Arc<ServerConfig>> {
    let (names, addresses) = called(address, further);
    let identity = pki.server(&names, &addresses).map_err(|error| match error {
        PkiError::Sign { .. } => {
            let hint = "every --tls-san must be the name of a host, or an address";
            anyhow::Error::from(Hinted::new(error.to_string()).hint(hint))
        }
        other => other.into(),
    })?;
    Ok(tls::server_config(&identity, clients)?)
}

/// The names and addresses of the server: those that it always has, the one it listens on, and further ones.
fn called(address: IpAddr, further: &[String]) -> (Vec<String>, Vec<IpAddr>) {
    let mut names: Vec<String> =
        ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned).into();
    let mut addresses = vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 96, 0, 1])];
    addresses.extend(Some(address).filter(|address| !address.is_unspecified()));
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
        let (names, addresses) = called(everywhere, &["hive.example.com".to_owned(), "192.0.2.7".to_owned()]);
        assert_eq!(names.last().map(String::as_str), Some("hive.example.com"));
        assert_eq!(addresses.last(), Some(&IpAddr::from([192, 0, 2, 7])));
        assert!(!addresses.contains(&everywhere));
    }
}
