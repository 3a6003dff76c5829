//! Somebody who speaks MCP. The operator does not, and asks whether a server answers.

use std::fmt;
use std::net::SocketAddr;

use futures::future::BoxFuture;

/// Talks to MCP servers.
pub trait Handshake: fmt::Debug + Send + Sync + 'static {
    /// Shakes hands with the server at a URL, whose host is at `address`, and counts its tools. It ends by itself, and
    /// soon.
    fn shake(&self, url: String, address: SocketAddr) -> BoxFuture<'static, Result<usize, Silence>>;
}

/// Why a server has not told its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It wants to know who asks.
    Unauthorized,
    /// It cannot be talked to, in words for its owner.
    Failed(String),
}
