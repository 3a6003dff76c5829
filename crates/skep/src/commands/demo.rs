//! `skep demo`.

use std::env;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum as _;
use skep_node::container::POD_ADDRESS_VARIABLE;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::cli::{DemoArgs, DemoServer, DemoTransport, EchoArgs};
use crate::demo::{self, HttpTransport, Spoken};
use crate::hint::Hinted;
use crate::stop::Stop;

/// Where each setting is looked for when no flag gives it: the names that the operator sets, then those that images
/// made with other tools are used to.
const TRANSPORT_VARIABLES: &[&str] = &["MCP_TRANSPORT"];
const HOST_VARIABLES: &[&str] = &["MCP_HOST", "FASTMCP_HOST"];
const PORT_VARIABLES: &[&str] = &["MCP_PORT", "FASTMCP_PORT", "PORT"];

/// How the echo server is reached.
#[derive(Debug, PartialEq, Eq)]
enum Settings {
    Stdio,
    Http { transport: HttpTransport, host: String, port: u16 },
}

impl Settings {
    /// Flags win over the environment. An empty variable is none.
    fn resolve(args: EchoArgs, variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let find = |names: &[&'static str]| {
            let values = names.iter().filter_map(|name| Some((*name, variable(name)?)));
            values.into_iter().find(|(_, value)| !value.is_empty())
        };
        let transport = match (args.transport, find(TRANSPORT_VARIABLES)) {
            (Some(transport), _) => transport,
            (None, None) => DemoTransport::Stdio,
            (None, Some((name, value))) => DemoTransport::from_str(&value, false).map_err(|_| {
                Hinted::new(format!("{name} is {value:?}, which is no transport"))
                    .hint("the transports are stdio, sse and streamable-http")
            })?,
        };
        let transport = match transport {
            DemoTransport::Stdio => return Ok(Self::Stdio),
            DemoTransport::Sse => HttpTransport::Sse,
            DemoTransport::StreamableHttp => HttpTransport::Streamable,
        };
        let host = args.host.or_else(|| Some(find(HOST_VARIABLES)?.1)).unwrap_or_else(|| "127.0.0.1".to_owned());
        let is_any = host.parse().is_ok_and(|host: IpAddr| host.is_unspecified());
        // A pod without a network of its own has no other address.
        let host = variable(POD_ADDRESS_VARIABLE).filter(|_| is_any).unwrap_or(host);
        let port = match (args.port, find(PORT_VARIABLES)) {
            (Some(port), _) => port,
            (None, None) => 8080,
            (None, Some((name, value))) => {
                value.parse().with_context(|| format!("{name} is {value:?}, which is no port"))?
            }
        };
        Ok(Self::Http { transport, host, port })
    }
}

pub(super) fn run(args: DemoArgs) -> anyhow::Result<()> {
    let DemoServer::Echo(args) = args.server;
    let spoken = Spoken::only(args.revision.as_deref());
    let settings = Settings::resolve(args, |name| env::var(name).ok())?;
    let runtime = Runtime::new()?;
    let result = runtime.block_on(serve(settings, spoken));
    // A thread that waits for standard input would keep the process alive.
    runtime.shutdown_timeout(Duration::ZERO);
    result
}

async fn serve(settings: Settings, spoken: Spoken) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let mut requests = Stop::new()?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        requests.asked().await;
        stopping.cancel();
    });
    match settings {
        Settings::Stdio => {
            eprintln!("serving MCP on standard input and output");
            demo::serve_stdio(spoken, stop).await?;
        }
        Settings::Http { transport, host, port } => {
            let listener = TcpListener::bind((host.as_str(), port)).await.map_err(|error| {
                Hinted::new(format!("cannot listen on {host}:{port}: {error}"))
                    .hint("choose another port with --port, or port 0 for any that is free")
            })?;
            let path = match transport {
                HttpTransport::Streamable => "mcp",
                HttpTransport::Sse => "sse",
            };
            eprintln!("serving http://{}/{path}", listener.local_addr()?);
            demo::serve_http(spoken, transport, listener, stop).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        transport: Option<DemoTransport>,
        port: Option<u16>,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<Settings> {
        let args = EchoArgs { transport, host: None, port, revision: None };
        Settings::resolve(args, |name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn http(transport: HttpTransport, host: &str, port: u16) -> Settings {
        Settings::Http { transport, host: host.to_owned(), port }
    }

    #[test]
    fn flags_win_over_the_environment_and_the_operators_names_over_others() {
        use HttpTransport::{Sse, Streamable};
        assert_eq!(resolve(None, None, &[]).unwrap(), Settings::Stdio);
        assert_eq!(resolve(None, None, &[("MCP_TRANSPORT", "stdio"), ("MCP_PORT", "x")]).unwrap(), Settings::Stdio);
        let operator = [
            ("MCP_TRANSPORT", "sse"),
            ("MCP_PORT", "9000"),
            ("FASTMCP_PORT", "1"),
            ("PORT", "2"),
            ("MCP_HOST", "0.0.0.0"),
        ];
        assert_eq!(resolve(None, None, &operator).unwrap(), http(Sse, "0.0.0.0", 9000));
        let flags = resolve(Some(DemoTransport::StreamableHttp), Some(7), &operator).unwrap();
        assert_eq!(flags, http(Streamable, "0.0.0.0", 7));
        let others = [
            ("MCP_TRANSPORT", "streamable-http"),
            ("MCP_PORT", ""),
            ("PORT", "3"),
            ("MCP_HOST", ""),
            ("FASTMCP_HOST", "::1"),
        ];
        assert_eq!(resolve(None, None, &others).unwrap(), http(Streamable, "::1", 3));
        let pod = [("MCP_TRANSPORT", "sse"), (POD_ADDRESS_VARIABLE, "127.244.0.2"), ("MCP_HOST", "0.0.0.0")];
        assert_eq!(resolve(None, None, &pod).unwrap(), http(Sse, "127.244.0.2", 8080));
        assert_eq!(resolve(None, None, &pod[..2]).unwrap(), http(Sse, "127.0.0.1", 8080));
        assert!(resolve(None, None, &[("MCP_TRANSPORT", "carrier-pigeon")]).is_err());
        assert!(resolve(Some(DemoTransport::Sse), None, &[("PORT", "many")]).is_err());
    }
}
