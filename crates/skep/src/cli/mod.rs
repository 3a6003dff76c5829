//! The flags, exactly as a person types them. No decision is taken here.

mod eras;
mod machine;
mod node;
mod objects;
mod operator;
mod proxy;
mod range;

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ipnet::Ipv4Net;
use skep_api::{crd, duration};

pub use eras::{EraArgs, EraChoice, ParkedCallsChoice, SessionsChoice};
pub use machine::{DataArgs, DoctorArgs, DownArgs, IsolationChoice, StatusArgs, StatusFormat, UpArgs};
pub use node::NodeArgs;
pub use objects::{ApplyArgs, DeleteArgs, GetArgs, LogsArgs, NamespaceArgs, ObjectFormat};
pub use operator::OperatorArgs;
pub use proxy::{ProxyArgs, ProxyCommand, ProxyRunArgs, ProxyTransport, RunnerArgs};
use range::address_range;

/// Run MCP servers as managed, secured endpoints.
///
/// Skep takes the manifests of the ToolHive operator and runs them: on a laptop with one command, and on any
/// Kubernetes cluster as an operator.
#[derive(Debug, Parser)]
#[command(
    name = "skep",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Every command explains itself: skep COMMAND --help"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    Up(UpArgs),
    Status(StatusArgs),
    Logs(LogsArgs),
    Down(DownArgs),
    Apply(ApplyArgs),
    Get(GetArgs),
    Delete(DeleteArgs),
    Doctor(DoctorArgs),
    Operator(OperatorArgs),
    Node(NodeArgs),
    Proxy(ProxyArgs),
    ApiServer(ApiServerArgs),
    Crds(CrdsArgs),
    Demo(DemoArgs),
    Version(VersionArgs),
    Completions(CompletionsArgs),
    #[command(hide = true)]
    Run(RunnerArgs),
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

/// Run the embedded Kubernetes API server alone.
///
/// It keeps everything in the data folder, serves TLS with an authority of its own, and writes a kubeconfig for its
/// administrator there. No controllers, no garbage collection and no node run with it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep api-server --data-dir ./data\n  \
    kubectl --kubeconfig ./data/kubeconfig get namespaces\n  \
    skep api-server --data-dir ./data --listen 0.0.0.0:6443 --tls-san hive.example.com --tls-san 192.0.2.7")]
pub struct ApiServerArgs {
    /// The folder of the server's data. It is created when it does not exist.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: PathBuf,
    /// The address to listen on. Port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// A further name or address by which clients reach the server, for its certificate. May be given several times.
    #[arg(long = "tls-san", value_name = "NAME", value_delimiter = ',', value_parser = host)]
    pub tls_names: Vec<String>,
    /// The range of the services' addresses. It belongs to the data, and can be changed while no services are there.
    /// [default: that of the data, 10.96.0.0/16 for new ones]
    #[arg(long, value_name = "RANGE", value_parser = address_range)]
    pub service_range: Option<Ipv4Net>,
}

/// Print the CustomResourceDefinitions of all kinds.
///
/// The output is what a cluster needs before it accepts Skep's manifests. Install it with server-side apply: the
/// definition of VirtualMCPServer is too large for the annotation that client-side apply keeps.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep crds | kubectl apply --server-side -f -\n  \
    skep crds --kind MCPServer -o json\n  \
    skep crds --kind mcpg --kind vmcp")]
pub struct CrdsArgs {
    /// How the definitions are written.
    #[arg(short, long, value_enum, default_value_t = DocumentFormat::Yaml, value_name = "FORMAT")]
    pub output: DocumentFormat,
    /// Print only this kind. May be given several times; plural and short names are understood.
    #[arg(
        short,
        long = "kind",
        value_name = "KIND",
        value_delimiter = ',',
        value_parser = KindName,
        hide_possible_values = true
    )]
    pub kinds: Vec<String>,
}

/// An address, or the name of one on this machine, such as localhost:6443.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => "an address and a port are needed, as in 127.0.0.1:6443".to_owned(),
        _ => format!("no address has this name: {error}"),
    })?;
    // A name may stand for addresses of both kinds; the older one is the one that everybody tries.
    found.min_by_key(SocketAddr::is_ipv6).ok_or_else(|| "no address has this name".to_owned())
}

/// A time, such as 90s or 1h30m, that something can take.
fn positive_duration(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text).map_err(|error| error.to_string())?;
    Some(time).filter(|time| !time.is_zero()).ok_or_else(|| "a duration above zero is needed, as in 90s".to_owned())
}

/// The name of a host, perhaps of all below one, or an address: what a certificate can say.
fn host(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        let inner = label.trim_matches('-');
        label == inner
            && (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let name = text.strip_prefix("*.").unwrap_or(text);
    if text.parse::<IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(is_label)) {
        return Ok(text.to_owned());
    }
    Err("the name of a host or an address is needed, without scheme and port, as in hive.example.com".to_owned())
}

/// Takes any text, and offers the kinds to completion. Whether there is such a kind is for the command to say, with
/// more to go by than a list.
#[derive(Debug, Clone)]
struct KindName;

impl TypedValueParser for KindName {
    type Value = String;

    fn parse_ref(&self, command: &clap::Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(crd::ALL.iter().map(|entry| PossibleValue::new(entry.definition.kind))))
    }
}

/// Forms of a printed document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DocumentFormat {
    /// A stream of YAML documents.
    Yaml,
    /// One JSON document; a List when there is more than one.
    Json,
}

/// Run an MCP server to try things with.
///
/// It is part of the program and needs no network. Manifests name it by its image, such as skep-demo/echo.
#[derive(Debug, Args)]
pub struct DemoArgs {
    #[command(subcommand)]
    pub server: DemoServer,
}

/// The servers to try things with.
#[derive(Debug, Subcommand)]
pub enum DemoServer {
    Echo(EchoArgs),
}

/// A server with a tool, resource or prompt for every feature of MCP.
///
/// It speaks every revision of the protocol, from 2024-11-05 to 2026-07-28. What is not given by a flag is taken from
/// the environment: MCP_TRANSPORT; MCP_HOST or FASTMCP_HOST; MCP_PORT, FASTMCP_PORT or PORT.
///
/// Over HTTP it talks to programs of any kind, and to web pages of this machine only. On a loopback address it also
/// insists on being called by a name of this machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep demo echo\n  \
    skep demo echo --transport streamable-http --port 8080    # http://127.0.0.1:8080/mcp\n  \
    skep demo echo --transport sse --port 8080                # http://127.0.0.1:8080/sse")]
pub struct EchoArgs {
    /// How clients reach the server: stdio unless the environment says otherwise.
    #[arg(long, value_enum, value_name = "TRANSPORT")]
    pub transport: Option<DemoTransport>,
    /// The address or name to listen on: 127.0.0.1 unless the environment says otherwise.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// The port to listen on: 8080 unless the environment says otherwise. 0 takes any that is free.
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Speak this revision of the protocol only, as a server does that knows no other; all of them unless given.
    #[arg(long, value_name = "REVISION", value_parser = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])]
    pub revision: Option<String>,
}

/// Transports of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoTransport {
    /// One client, on standard input and output.
    Stdio,
    /// HTTP with a stream of events, as in revision 2024-11-05.
    Sse,
    /// HTTP as in all later revisions.
    StreamableHttp,
}

/// Print the version.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  skep version\n  skep version -o json")]
pub struct VersionArgs {
    /// How the version is written.
    #[arg(short, long, value_enum, default_value_t = TextFormat::Text, value_name = "FORMAT")]
    pub output: TextFormat,
}

/// For people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// Lines for people.
    Text,
    /// A JSON document for programs.
    Json,
}

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep completions bash > ~/.local/share/bash-completion/completions/skep\n  \
    skep completions zsh > \"${fpath[1]}/_skep\"\n  \
    skep completions fish > ~/.config/fish/completions/skep.fish")]
pub struct CompletionsArgs {
    /// The shell that will read the script.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Write the files of the repository that are generated from the program.
#[derive(Debug, Args)]
pub struct ReferenceArgs {
    /// Only say which files are out of date.
    #[arg(long)]
    pub check: bool,
    /// The root of the repository.
    pub root: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_certificate_can_say_is_a_host() {
        for name in ["hive.example.com", "hive", "*.example.com", "192.0.2.7", "2001:db8::1"] {
            assert_eq!(host(name).as_deref(), Ok(name));
        }
        for name in ["", "*", "http://hive:80", "hive:6443", "a b", "-a", "a..b", "[::1]"] {
            assert!(host(name).is_err(), "{name}");
        }
    }
}
