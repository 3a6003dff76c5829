//! The processes of the measurement. This program is all of them, each in a process of its own.

mod bare;
mod bridge;
mod echo;
mod server;
mod skep;

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use clap::Subcommand;
use tokio::net::TcpListener;

/// A process of the measurement.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Part {
    /// An MCP server that speaks streamable HTTP
    Server,
    /// The same on standard input and output
    Echo,
    /// A reverse proxy that does nothing else
    Bare {
        /// The MCP server
        server: SocketAddr,
    },
    /// The transparent proxy
    Skep {
        /// The MCP server
        server: SocketAddr,
    },
    /// The bridge, before a server on standard input and output
    Bridge,
}

/// What makes this program a part of the measurement.
pub(crate) const COMMAND: &str = "part";

impl Part {
    /// What this program has to be given to be this part.
    pub(super) fn arguments(&self) -> Vec<String> {
        let (name, server) = match self {
            Self::Server => ("server", None),
            Self::Echo => ("echo", None),
            Self::Bare { server } => ("bare", Some(server)),
            Self::Skep { server } => ("skep", Some(server)),
            Self::Bridge => ("bridge", None),
        };
        [COMMAND, name].map(str::to_owned).into_iter().chain(server.map(SocketAddr::to_string)).collect()
    }

    /// Is this part, until whoever started it is gone.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Echo => echo::run(),
            Self::Server => server::serve(listen().await?).await,
            Self::Bare { server } => bare::serve(listen().await?, server).await,
            Self::Skep { server } => skep::serve(listen().await?, server).await,
            Self::Bridge => bridge::serve(listen().await?).await,
        }
    }
}

/// Listens, says where, and ends with whoever started this process.
async fn listen() -> anyhow::Result<TcpListener> {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    Ok(listener)
}
