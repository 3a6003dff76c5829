//! The processes of a measurement. This program is all of them, each in a process of its own.

mod bare;
mod bridge;
pub(crate) mod chain;
pub(crate) mod companion;
mod echo;
pub(crate) mod policies;
mod server;
mod skep;

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;

use chain::{Around, Layer};

/// A process of a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Part {
    /// An MCP server that speaks streamable HTTP.
    Server,
    /// The same on standard input and output.
    Echo,
    /// A reverse proxy that does nothing else.
    Bare { server: SocketAddr },
    /// The transparent proxy, with a chain.
    Skep { server: SocketAddr, chain: Vec<Layer>, around: Option<Around> },
    /// The bridge, before a server on standard input and output.
    Bridge,
    /// Everybody whom a chain asks. Its issuer has this key.
    Companion { key: Value },
}

/// What makes this program a part of a measurement.
pub(crate) const COMMAND: &str = "part";

impl Part {
    /// What this program has to be given to be this part.
    pub(super) fn arguments(&self) -> anyhow::Result<[String; 2]> {
        Ok([COMMAND.to_owned(), serde_json::to_string(self)?])
    }

    /// The part that this program was told to be.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Is this part, until whoever started it is gone.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Echo => echo::run(),
            Self::Server => server::serve(listen().await?).await,
            Self::Bare { server } => bare::serve(listen().await?, server).await,
            Self::Skep { server, chain, around } => {
                let middleware = chain::middleware(&chain, around.as_ref()).await?;
                skep::serve(listen().await?, server, middleware).await
            }
            Self::Bridge => bridge::serve(listen().await?).await,
            Self::Companion { key } => companion::serve(listen().await?, &key).await,
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
