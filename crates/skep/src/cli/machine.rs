//! The flags of what runs on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum, ValueHint};
use ipnet::Ipv4Net;

use super::{TextFormat, address_range, listen_address};
use crate::machine;

/// Where the API server is, when nothing else is said.
const LISTEN: &str = "127.0.0.1:7443";

/// Where everything is kept.
#[derive(Debug, Clone, Args)]
pub struct DataArgs {
    /// The folder of all data, which skep up creates when it does not exist. [default: ~/.local/share/skep]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub data_dir: Option<PathBuf>,
}

/// Run MCP servers on this machine, with everything they need.
///
/// Starts a Kubernetes-compatible API server, its controllers and a node that runs pods as processes of this machine,
/// installs the kinds of Skep, and applies the manifests: all of them, or none when one is refused. No rights of an
/// administrator are needed. What is kept is in the data folder; npm and uv keep their own caches, and without namespaces
/// the secrets of pods are in a folder of /dev/shm while it runs. Ctrl-C ends all of it; the next start continues where
/// this one left off.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep up\n  \
    skep up -f manifests/ --image-map images.yaml\n  \
    skep up --detach && skep status && skep down\n  \
    KUBECONFIG=~/.local/share/skep/kubeconfig kubectl get pods")]
pub struct UpArgs {
    /// A manifest, or a folder of manifests, to apply; - reads standard input. Without any, a new data folder gets a demo
    /// server.
    #[arg(short, long, value_name = "FILE|FOLDER", value_hint = ValueHint::AnyPath)]
    pub filename: Vec<PathBuf>,
    #[command(flatten)]
    pub data: DataArgs,
    /// The address of the API server. Port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN, value_parser = listen_address)]
    pub listen: SocketAddr,
    /// No demo server for a new data folder.
    #[arg(long)]
    pub no_demo: bool,
    /// A file that says which command stands for which image. The next start uses it, too, unless it is given another.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image_map: Option<PathBuf>,
    /// Another image that is Skep itself, as those called skep are; * stands for any text. May be given several times.
    #[arg(long, value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new())]
    pub own_image: Vec<String>,
    /// How pods are kept apart from this machine and from each other.
    #[arg(long, value_enum, default_value_t = IsolationChoice::Auto)]
    pub isolation: IsolationChoice,
    /// The range of the pods' addresses.
    #[arg(long, value_name = "RANGE", default_value = machine::POD_RANGE, value_parser = address_range)]
    pub pod_range: Ipv4Net,
    /// The range of the services' addresses. It belongs to the data folder, and can be changed while no services are there.
    /// [default: that of the data folder, 10.96.0.0/16 for a new one]
    #[arg(long, value_name = "RANGE", value_parser = address_range)]
    pub service_range: Option<Ipv4Net>,
    /// Go on in the background: return when everything is served (exit code 0), when an endpoint has failed (1), or after
    /// a minute in which not everything was ready (4); it goes on in any case. What is said goes to the file log in the
    /// data folder.
    #[arg(long)]
    pub detach: bool,
}

/// How pods are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IsolationChoice {
    /// By namespaces where the kernel has them, otherwise not at all.
    Auto,
    /// By namespaces, or not at all started.
    Namespaces,
    /// Not at all.
    None,
}

/// Show the MCP endpoints of this machine.
///
/// One line for each endpoint: what it is, how it does, its URL on this machine, and how many tools it offers right now.
/// The exit code is 3 when nothing runs on the data folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep status\n  \
    skep status -o client                          # to paste into the settings of an MCP client\n  \
    skep status -o json | jq -r '.[].localUrl'")]
pub struct StatusArgs {
    /// How the endpoints are written.
    #[arg(short, long, value_enum, default_value_t = StatusFormat::Table, value_name = "FORMAT")]
    pub output: StatusFormat,
    #[command(flatten)]
    pub data: DataArgs,
}

/// Forms of the printed endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// Columns for people.
    Table,
    /// More columns.
    Wide,
    /// A JSON array for programs.
    Json,
    /// The configuration of an MCP client.
    Client,
}

/// Stop what runs on this machine.
///
/// Asks the skep up of the data folder to stop, and waits until it has. Pods get the time that they ask for to end, but
/// at most 10 seconds. All objects and volumes are kept: the next skep up continues where this one left off. When nothing
/// runs, nothing is done.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  skep down\n  skep down --force --timeout 5")]
pub struct DownArgs {
    /// How many seconds to wait.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub timeout: u64,
    /// Kill it when it has not stopped by then.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub data: DataArgs,
}

/// Check whether this machine has what Skep needs.
///
/// Says of each thing what it is needed for, and what to do where it is missing. The exit code is 0 when skep up can
/// work here, even if some images or comforts cannot be had.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  skep doctor\n  skep doctor -o json")]
pub struct DoctorArgs {
    /// How the findings are written.
    #[arg(short, long, value_enum, default_value_t = TextFormat::Text, value_name = "FORMAT")]
    pub output: TextFormat,
    /// The address that skep up would listen on.
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN, value_parser = listen_address)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub data: DataArgs,
}
