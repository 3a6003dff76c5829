//! Speaks MCP for the operator, which wants to know whether servers answer.

use std::net::SocketAddr;

use futures::future::{BoxFuture, FutureExt as _};
use http::StatusCode;
use skep_operator::handshake::{Handshake, Silence};

use super::{Dialect, OLD_PATH, split, talk};

/// Asks servers for their tools.
#[derive(Debug)]
pub(crate) struct Caller;

impl Handshake for Caller {
    fn shake(&self, url: String, address: SocketAddr) -> BoxFuture<'static, Result<usize, Silence>> {
        async move {
            let (_, path) = split(&url);
            let is_old = path.split('#').next() == Some(OLD_PATH);
            let dialect = if is_old { Dialect::Sse } else { Dialect::Streamable };
            let tools = dialect.tools(&url, Some(address)).await.map_err(|silence| match silence {
                talk::Silence::Refused(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Silence::Unauthorized,
                other => Silence::Failed(other.to_string()),
            })?;
            Ok(tools.len())
        }
        .boxed()
    }
}
