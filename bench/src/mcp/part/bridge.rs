//! The bridge of Skep with the operator's default chain, before this program as a server on standard input and output.

use std::sync::Arc;

use skep_proxy::stdio::{Bridge, ChildProcess};
use skep_proxy::{Limits, Proxy, Readiness};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Part, chain};

pub(super) async fn serve(listener: TcpListener) -> anyhow::Result<()> {
    let bridge = Bridge::new(Limits::default(), Readiness::default());
    let middleware = chain::middleware(&chain::DEFAULT, None).await?;
    let proxy = Proxy::streamable(Arc::clone(&bridge)).with_middleware(middleware);
    let child = ChildProcess {
        program: std::env::current_exe()?.into(),
        arguments: Part::Echo.arguments()?.map(Into::into).into(),
        ..ChildProcess::default()
    };
    let serving = async { anyhow::Ok(proxy.serve(listener, CancellationToken::new()).await?) };
    let running = async { anyhow::Ok(bridge.run(child, CancellationToken::new()).await?) };
    tokio::try_join!(serving, running)?;
    Ok(())
}
