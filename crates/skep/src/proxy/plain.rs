//! A proxy in a pod without namespaces: its account is below a folder of its own, and services have no names.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Service;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use kube::{Api, Client, Config};
use skep_api::names::env::runner;
use skep_api::names::mcp_server;
use skep_node::container::{ADDRESS_SHIFT_VARIABLE, VOLUME_ROOT_VARIABLE};
use skep_node::network::Reach;

use super::Variables;

/// Where pods have their account.
const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";
/// Set by the node, beside the host.
const PORT_VARIABLE: &str = "KUBERNETES_SERVICE_PORT";
/// What everything of the cluster is called in a kubeconfig with nothing else in it.
const NAME: &str = "pod";

/// What the node tells such a pod.
#[derive(Debug)]
pub(super) struct Plain {
    account: PathBuf,
    reach: Reach,
    server: String,
}

impl Plain {
    /// None with namespaces.
    pub(super) fn of(variables: Variables<'_>) -> Option<Self> {
        let volumes = variables(VOLUME_ROOT_VARIABLE)?;
        let shift = variables(ADDRESS_SHIFT_VARIABLE)?.parse().ok()?;
        let (host, port) = (variables(runner::KUBERNETES_SERVICE_HOST)?, variables(PORT_VARIABLE)?);
        Some(Self {
            account: PathBuf::from(volumes).join(ACCOUNT),
            reach: Reach::on_loopback(shift),
            server: format!("https://{host}:{port}"),
        })
    }

    /// The API server, with the account of the pod.
    pub(super) async fn config(&self) -> anyhow::Result<Config> {
        let file = |name: &str| self.account.join(name);
        let path = |name: &str| Some(file(name).display().to_string());
        let namespace = std::fs::read_to_string(file("namespace")).context("the pod has no account")?;
        let cluster =
            Cluster { server: Some(self.server.clone()), certificate_authority: path("ca.crt"), ..Cluster::default() };
        let context = Context {
            cluster: NAME.to_owned(),
            user: Some(NAME.to_owned()),
            namespace: Some(namespace),
            ..Context::default()
        };
        let user = AuthInfo { token_file: path("token"), ..AuthInfo::default() };
        let kubeconfig = Kubeconfig {
            current_context: Some(NAME.to_owned()),
            clusters: vec![NamedCluster { name: NAME.to_owned(), cluster: Some(cluster), ..NamedCluster::default() }],
            contexts: vec![NamedContext { name: NAME.to_owned(), context: Some(context), ..NamedContext::default() }],
            auth_infos: vec![NamedAuthInfo {
                name: NAME.to_owned(),
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            }],
            ..Kubeconfig::default()
        };
        Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
    }

    /// Where the server is: at the address of its service, which is there already and keeps it.
    pub(super) async fn backend_url(
        &self,
        client: Client,
        namespace: &str,
        name: &str,
        port: i32,
    ) -> anyhow::Result<String> {
        let name = mcp_server::backend_service(name);
        let service = Api::<Service>::namespaced(client, namespace).get(&name).await;
        let service = service.with_context(|| format!("cannot look up the service {namespace}/{name}"))?;
        let address = service.spec.and_then(|spec| spec.cluster_ip?.parse::<Ipv4Addr>().ok());
        let address = address.with_context(|| format!("the service {namespace}/{name} has no address"))?;
        Ok(format!("http://{}:{port}", self.reach.host(address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_account_is_below_the_folder_of_the_volumes() {
        // Another part of the program may have chosen already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let volumes = tempfile::tempdir().unwrap();
        let folder = volumes.path().join(ACCOUNT);
        std::fs::create_dir_all(&folder).unwrap();
        let authority = skep_kube::auth::pki::Pki::open(volumes.path()).unwrap();
        std::fs::write(folder.join("ca.crt"), authority.authority_certificate()).unwrap();
        std::fs::write(folder.join("token"), "a token").unwrap();
        std::fs::write(folder.join("namespace"), "hive").unwrap();
        let root = volumes.path().to_str().unwrap().to_owned();
        let variables = |name: &str| match name {
            VOLUME_ROOT_VARIABLE => Some(root.clone()),
            ADDRESS_SHIFT_VARIABLE => Some("1".to_owned()),
            runner::KUBERNETES_SERVICE_HOST => Some("127.0.0.1".to_owned()),
            PORT_VARIABLE => Some("7443".to_owned()),
            _ => None,
        };
        let plain = Plain::of(&variables).unwrap();
        let config = plain.config().await.unwrap();
        assert_eq!(
            (config.cluster_url.to_string(), config.default_namespace),
            ("https://127.0.0.1:7443/".into(), "hive".into())
        );
        assert_eq!(config.auth_info.token_file, Some(folder.join("token").display().to_string()));
        assert_eq!(plain.reach.host([10, 96, 0, 9].into()), Ipv4Addr::new(127, 97, 0, 9));
        assert!(Plain::of(&|name| variables(name).filter(|_| name != VOLUME_ROOT_VARIABLE)).is_none());
    }
}
