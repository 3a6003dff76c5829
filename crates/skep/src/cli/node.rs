//! The flags of a node for a cluster elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};
use ipnet::Ipv4Net;

use super::{IsolationChoice, address_range, listen_address};
use crate::machine;

/// Join a Kubernetes cluster as a node that runs pods as processes of this machine.
///
/// Registers a node, keeps its lease, runs the pods that are bound to it, and serves logs, exec, attach and port-forward.
/// Services of the cluster lead to pods of this node, by their addresses and their names; those of type LoadBalancer are
/// on 127.0.0.1 of this machine. Nothing but the data folder is touched. Ctrl-C ends all pods of the node.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep node --kubeconfig ~/.kube/config\n  \
    skep node --kubeconfig node.kubeconfig --name bee --listen 192.0.2.7:10250 \\\n    \
    --tls-cert bee.crt --tls-key bee.key --client-ca ca.crt")]
pub struct NodeArgs {
    /// The kubeconfig of the cluster.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub kubeconfig: PathBuf,
    /// The context of the kubeconfig. [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// The name of the node. [default: the name of this machine]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The folder of all data. It is created when it does not exist. [default: ~/.local/share/skep/nodes/NAME]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub data_dir: Option<PathBuf>,
    /// Where the API server reaches the node: an address of this machine. Port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10250", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// The certificate that the node shows to the API server. Without it the node makes one, which an API server with
    /// --kubelet-certificate-authority does not accept.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The authority of those who may look into the node. [default: what the cluster says]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub client_ca: Option<PathBuf>,
    /// The range of the pods' addresses, which no other node may use.
    #[arg(long, value_name = "RANGE", default_value = machine::POD_RANGE, value_parser = address_range)]
    pub pod_range: Ipv4Net,
    /// The range of the services' addresses. [default: what the cluster says]
    #[arg(long, value_name = "RANGE", value_parser = address_range)]
    pub service_range: Option<Ipv4Net>,
    /// A file that says which command stands for which image.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image_map: Option<PathBuf>,
    /// Another image that is Skep itself, as those called skep are; * stands for any text. May be given several times.
    #[arg(long, value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new())]
    pub own_image: Vec<String>,
    /// How pods are kept apart from this machine and from each other.
    #[arg(long, value_enum, default_value_t = IsolationChoice::Auto)]
    pub isolation: IsolationChoice,
}
