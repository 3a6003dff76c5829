//! `skep proxy run`, and the same as pods are given it: `skep run`.

use std::env;
use std::net::SocketAddr;

use skep_api::names::env::runner;
use skep_proxy::transparent::Dialect;

use crate::cli::{ProxyRunArgs, ProxyTransport};
use crate::hint::Hinted;
use crate::proxy::{Front, Given, Requests, resolve, serve_command, serve_image, serve_url};

/// Where a proxy for people listens.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

pub(super) fn run(args: ProxyRunArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

/// Whether more is to be said than usual.
pub(super) fn is_debugging(args: &ProxyRunArgs) -> bool {
    let said = env::var(runner::DEBUG).unwrap_or_default();
    args.debug || matches!(said.to_ascii_lowercase().as_str(), "1" | "t" | "true")
}

async fn serve(args: ProxyRunArgs) -> anyhow::Result<()> {
    let mut requests = Requests::new()?;
    let debug = is_debugging(&args);
    let listen = args.listen.unwrap_or(LISTEN);
    let mode = match args.transport.unwrap_or_default() {
        ProxyTransport::Sse => Dialect::Sse,
        ProxyTransport::StreamableHttp => Dialect::Streamable,
    };
    let front = Front { origins: args.origins, ..Front::at(listen.ip().to_string(), listen.port(), mode) };
    match (args.image, args.url) {
        (Some(image), _) => {
            let variables = |name: &str| env::var(name).ok();
            let config = resolve(Given { image, pod_patch: args.k8s_pod_patch, debug }, &variables)?;
            Box::pin(serve_image(&config, &variables, &mut requests)).await
        }
        (None, Some(url)) => serve_url(&front, &url, &mut requests).await,
        (None, None) if !args.program.is_empty() => serve_command(&front, args.program, &mut requests).await,
        (None, None) => Err(Hinted::new("no server is named")
            .hint("skep run IMAGE is for pods; skep proxy run --help says what else there is")
            .into()),
    }
}
