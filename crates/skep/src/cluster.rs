//! A cluster elsewhere, reached from inside the namespaces of this program.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use skep_node::broker::Broker;
use skep_node::member::Passage;

use crate::hint::Hinted;

/// An API server, and the way to it.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// Where the kubeconfig says that it is.
    pub(crate) url: String,
    passage: Passage,
}

impl Cluster {
    /// Reaches the cluster of a kubeconfig's context by way of the machine outside.
    pub(crate) async fn reach(kubeconfig: &Path, context: Option<&str>, broker: &Broker) -> anyhow::Result<Self> {
        let unusable = || format!("cannot use the kubeconfig {}", kubeconfig.display());
        let document = Kubeconfig::read_from(kubeconfig).with_context(unusable)?;
        check(&document, context).with_context(unusable)?;
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let mut config = Config::from_custom_kubeconfig(document, &options).await.with_context(unusable)?;
        let url = config.cluster_url.to_string();
        let host = config.cluster_url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let is_secure = config.cluster_url.scheme_str() != Some("http");
        let port = config.cluster_url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let passage = Passage::open(broker.clone(), host.clone(), port).await?;
        let path = config.cluster_url.path().to_owned();
        let scheme = if is_secure { "https" } else { "http" };
        config.cluster_url = format!("{scheme}://{}{path}", passage.address()).parse()?;
        // The server is who it was before, wherever the way to it begins.
        config.tls_server_name.get_or_insert(host);
        let client = Client::try_from(config).with_context(unusable)?;
        Ok(Self { client, url, passage })
    }

    /// Where the way to it begins on this side.
    pub(crate) fn address(&self) -> SocketAddr {
        self.passage.address()
    }
}

/// Refuses what does not work where there is no network but that of the pods.
fn check(document: &Kubeconfig, context: Option<&str>) -> Result<(), Hinted> {
    let name = context.or(document.current_context.as_deref()).unwrap_or_default();
    let context = document.contexts.iter().find(|known| known.name == name).and_then(|known| known.context.as_ref());
    let Some(context) = context else {
        let known: Vec<&str> = document.contexts.iter().map(|known| known.name.as_str()).collect();
        let hint = format!("the contexts are: {}", known.join(", "));
        return Err(Hinted::new(format!("there is no context {name:?}")).hint(hint));
    };
    let user = document.auth_infos.iter().find(|known| Some(&known.name) == context.user.as_ref());
    let user = user.and_then(|known| known.auth_info.as_ref());
    if user.is_some_and(|user| user.exec.is_some() || user.auth_provider.is_some()) {
        let user = context.user.as_deref().unwrap_or_default();
        return Err(Hinted::new(format!("user {user:?} gets its credentials from another program"))
            .hint("a node needs a certificate or a token that is in the file, or in a file that it names"));
    }
    let cluster = document.clusters.iter().find(|known| known.name == context.cluster);
    let cluster = cluster.and_then(|known| known.cluster.as_ref());
    if cluster.is_some_and(|cluster| cluster.proxy_url.is_some()) {
        return Err(Hinted::new(format!("cluster {:?} is behind a proxy (proxy-url)", context.cluster))
            .hint("a node has to reach its API server directly"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(user: &str, cluster: &str, context: Option<&str>) -> Result<(), String> {
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: here,
              contexts: [{{name: here, context: {{cluster: c, user: u}}}}],
              clusters: [{{name: c, cluster: {{server: 'https://192.0.2.1:6443'{cluster}}}}}],
              users: [{{name: u, user: {{{user}}}}}]}}"
        );
        check(&Kubeconfig::from_yaml(&text).unwrap(), context).map_err(|error| error.to_string())
    }

    #[test]
    fn what_cannot_work_inside_is_refused() {
        assert_eq!(checked("token: abc", "", None), Ok(()));
        assert_eq!(checked("token: abc", "", Some("there")), Err("there is no context \"there\"".to_owned()));
        let program = "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}";
        assert!(checked(program, "", None).unwrap_err().contains("another program"));
        assert!(checked("token: abc", ", proxy-url: 'http://p:1'", None).unwrap_err().contains("proxy-url"));
    }
}
