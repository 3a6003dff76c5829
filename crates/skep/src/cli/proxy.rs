//! The flags of a proxy.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use skep_api::names::proxy_pod::POD_PATCH_FLAG;

use super::{EraArgs, listen_address, positive_duration};

/// Put an MCP server behind one address.
#[derive(Debug, Args)]
pub struct ProxyArgs {
    #[command(subcommand)]
    pub command: ProxyCommand,
}

/// What to do with a proxy.
#[derive(Debug, Subcommand)]
pub enum ProxyCommand {
    Run(ProxyRunArgs),
}

/// Run a proxy in front of one MCP server.
///
/// The server is at a URL, or a command of this machine that speaks on standard input and output, or an image. A server
/// of an image runs in Kubernetes: this is what the operator starts in the pods of an MCPServer or MCPRemoteProxy. It
/// needs a service account, and reads what to do from /etc/runconfig/runconfig.json, /etc/toolhive/runconfig.json or
/// ./runconfig.json.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    skep proxy run --url https://mcp.example.com/mcp\n  \
    skep proxy run -- npx -y @modelcontextprotocol/server-everything    # http://127.0.0.1:8080/mcp\n  \
    skep proxy run --transport sse --listen 127.0.0.1:9000 -- skep demo echo\n  \
    skep proxy run --processes 8 -- skep demo echo                      # a process for each session\n  \
    skep proxy run --config runconfig.json --url https://mcp.example.com/mcp\n  \
    skep proxy run --tls-cert proxy.crt --tls-key proxy.key --redis 127.0.0.1:6379 --url http://10.0.0.7:8080/mcp\n  \
    skep proxy run ghcr.io/acme/server                                  # in a pod of the operator")]
pub struct ProxyRunArgs {
    /// The image of the server.
    #[arg(conflicts_with_all = ["url", "program", "config", "listen", "transport", "origins", "tls_cert", "redis", "processes", "request_timeout", "backend_era", "parked_calls", "backend_sessions", "backend_session_idle"])]
    pub image: Option<String>,
    /// The address of a server that runs already.
    #[arg(long, value_name = "URL", conflicts_with = "program")]
    pub url: Option<String>,
    /// A RunConfig as the operator writes it, in JSON: who may call what, what is recorded and counted, and everything else
    /// that stands before the server. Flags count for more than what it says about the same thing.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// The address to listen on; port 0 takes any that is free. [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// What clients speak, and the server at the URL. [default: streamable-http]
    #[arg(long, value_enum, value_name = "TRANSPORT")]
    pub transport: Option<ProxyTransport>,
    /// An origin whose web pages may use the proxy. May be given several times.
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = origin)]
    pub origins: Vec<String>,
    /// The certificate that clients are shown, in PEM, with those that vouch for it. They then have to come by https.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// The Redis where sessions are kept, so that clients may come to any proxy that uses it. Its password is taken from the
    /// variable THV_SESSION_REDIS_PASSWORD.
    #[arg(long, value_name = "HOST:PORT")]
    pub redis: Option<String>,
    /// The database of that Redis.
    #[arg(long, value_name = "NUMBER", requires = "redis", default_value_t = 0)]
    pub redis_db: i64,
    /// What the keys of sessions there begin with. It ends with a colon. [default: thv:proxy:session:]
    #[arg(long, value_name = "PREFIX", requires = "redis")]
    pub redis_key_prefix: Option<String>,
    /// Give each session a process of its own, up to so many at a time. Whoever has no session shares one more.
    #[arg(long, value_name = "NUMBER", requires = "program", conflicts_with = "url")]
    pub processes: Option<NonZeroUsize>,
    /// How long the command may take for an answer, such as 90s or 5m. [default: what the variable
    /// TOOLHIVE_PROXY_REQUEST_TIMEOUT says, or 60s]
    #[arg(long, value_name = "DURATION", requires = "program", conflicts_with = "url", value_parser = positive_duration)]
    pub request_timeout: Option<Duration>,
    #[command(flatten)]
    pub eras: EraArgs,
    /// What the pods of the server are like, as JSON.
    #[arg(long, hide = true, value_name = "JSON", requires = "image")]
    pub k8s_pod_patch: Option<String>,
    /// Say more.
    #[arg(long)]
    pub debug: bool,
    /// The command that starts the server, and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub program: Vec<OsString>,
}

/// Any other text would be the origin of no page, and keep all of them out.
fn origin(text: &str) -> Result<String, String> {
    let is_one = skep_proxy::is_origin(text);
    is_one.then(|| text.to_owned()).ok_or_else(|| "an origin is needed, as in https://hive.example:8443".to_owned())
}

/// Transports of MCP over HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ProxyTransport {
    /// HTTP with a stream of events, as in revision 2024-11-05.
    Sse,
    /// HTTP as in all later revisions.
    #[default]
    StreamableHttp,
}

/// The same for pods, whose arguments are part of a contract: flags that nobody knows are accepted.
#[derive(Debug, Args)]
pub struct RunnerArgs {
    /// Flags, the image, and whatever follows.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    pub words: Vec<String>,
}

impl RunnerArgs {
    /// What the words mean. A flag takes its value after `=`; the first word that is no flag is the image.
    pub fn read(&self) -> ProxyRunArgs {
        let mut args = ProxyRunArgs {
            image: None,
            url: None,
            config: None,
            listen: None,
            transport: None,
            origins: Vec::new(),
            tls_cert: None,
            tls_key: None,
            redis: None,
            redis_db: 0,
            redis_key_prefix: None,
            processes: None,
            request_timeout: None,
            eras: EraArgs::default(),
            k8s_pod_patch: None,
            debug: false,
            program: Vec::new(),
        };
        let mut words = self.words.iter();
        while let Some(word) = words.next() {
            if let Some(patch) = word.strip_prefix(POD_PATCH_FLAG) {
                args.k8s_pod_patch = Some(patch.to_owned());
            } else if Some(word.as_str()) == POD_PATCH_FLAG.strip_suffix('=') {
                args.k8s_pod_patch = words.next().cloned();
            } else if let Some(rest) = word.strip_prefix("--debug") {
                args.debug |= matches!(rest, "" | "=true" | "=1");
            } else if word == "--" || !word.starts_with('-') {
                args.image =
                    args.image.or_else(|| if word == "--" { words.next().cloned() } else { Some(word.clone()) });
                break;
            }
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_may_be_given_any_flag() {
        let read = |words: &[&str]| {
            let args = RunnerArgs { words: words.iter().map(|word| (*word).to_owned()).collect() }.read();
            (args.image, args.k8s_pod_patch, args.debug)
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(read(&["--foreground=true", "placeholder"]), (text("placeholder"), None, false));
        assert_eq!(read(&["--k8s-pod-patch={\"a\": 1}", "image", "other"]), (text("image"), text("{\"a\": 1}"), false));
        assert_eq!(read(&["--k8s-pod-patch", "{}", "--debug", "image"]), (text("image"), text("{}"), true));
        assert_eq!(read(&["--debug=false", "-x", "--", "image", "--debug"]), (text("image"), None, false));
        assert_eq!(read(&["image", "--debug"]), (text("image"), None, false));
        assert_eq!(read(&[]), (None, None, false));
    }
}
