//! The transparent proxy of Skep.

use std::net::SocketAddr;

use skep_proxy::middleware::Middleware;
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(super) async fn serve(listener: TcpListener, server: SocketAddr, middleware: Middleware) -> anyhow::Result<()> {
    let target = Target::local(Dialect::Streamable, &format!("http://{server}"))?;
    let transparent = Transparent::new(target, Limits::default(), Forwarded::default())?;
    let proxy = Proxy::transparent(transparent).with_middleware(middleware);
    Ok(proxy.serve(listener, CancellationToken::new()).await?)
}
