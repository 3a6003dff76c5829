//! The flags of the operator.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use skep_operator::settings::CONCURRENCY;

/// Run the operator of a Kubernetes cluster.
///
/// Turns MCPServers, MCPRemoteProxies and the configurations that they name into Deployments, Services and rights, and
/// reports how they fare. The flags and variables are those of the ToolHive operator; docs/operator.md lists them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep operator --kubeconfig ~/.kube/config\n  \
    WATCH_NAMESPACE=team-a,team-b skep operator --leader-elect\n  \
    skep operator --controllers MCPOIDCConfig,MCPToolConfig")]
pub struct OperatorArgs {
    /// The kubeconfig of the cluster. [default: that of the environment, or of the pod]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Where metrics are served, as [HOST]:PORT; 0 serves none.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: String,
    /// Where /healthz and /readyz are served, as [HOST]:PORT; 0 serves none.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,
    /// Work only while holding a lease, so that several replicas can stand by.
    #[arg(long)]
    pub leader_elect: bool,
    /// The kinds to look after, separated by commas. [default: all]
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub controllers: Vec<String>,
    /// How many objects of a kind are worked on at a time.
    #[arg(long, value_name = "COUNT", default_value_t = CONCURRENCY, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,
    /// Hold the servers of MCPServers to the network of their permission profiles, by a NetworkPolicy each.
    ///
    /// The network of the cluster has to enforce NetworkPolicies, which know addresses and ports: a name that a profile
    /// allows stands for every address.
    #[arg(long)]
    pub enforce_network_profiles: bool,
}
