//! `skep proxy run`, and the same as pods are given it: `skep run`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use skep_api::config::run_config::RunConfig;
use skep_api::names::env::runner;
use skep_proxy::middleware::Middleware;
use skep_proxy::transparent::{Dialect, Target};
use skep_proxy::{RedisSettings, TlsIdentity, is_origin};

use crate::cli::{ProxyRunArgs, ProxyTransport};
use crate::hint::Hinted;
use crate::proxy::{
    Front, Given, Requests, Variables, build_chain, by_hand, read_eras, resolve, serve_command, serve_image, serve_url,
};

/// The exit code of a command line that makes no sense.
const USAGE: u8 = 2;

/// How long what is left over may take to end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where a proxy for people listens.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

pub(super) fn run(args: ProxyRunArgs) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(args));
    // Somebody who does not want to wait for calls does not want to wait for a name to be looked up, either.
    runtime.shutdown_timeout(FAREWELL);
    ended
}

/// Whether more is to be said than usual.
pub(super) fn is_debugging(args: &ProxyRunArgs) -> bool {
    let said = env::var(runner::DEBUG).unwrap_or_default();
    args.debug || matches!(said.to_ascii_lowercase().as_str(), "1" | "t" | "true")
}

async fn serve(args: ProxyRunArgs) -> anyhow::Result<()> {
    let mut requests = Requests::new()?;
    let debug = is_debugging(&args);
    let variables = |name: &str| env::var(name).ok();
    if let Some(image) = args.image {
        let config = resolve(Given { image, pod_patch: args.k8s_pod_patch, debug }, &variables)?;
        return Box::pin(serve_image(&config, &variables, &mut requests)).await;
    }
    check_flags(&args)?;
    let config = args.config.as_deref().map(|file| by_hand(file, args.url.as_deref())).transpose()?;
    let mut front = front(&args, config.as_ref(), &variables)?;
    if let Some(config) = &config {
        front.middleware = Middleware::new(build_chain(config, &variables).await?);
    }
    match args.url {
        Some(url) => serve_url(&front, &url, &mut requests).await,
        None if !args.program.is_empty() => {
            let own = args.processes.map_or(0, NonZeroUsize::get);
            serve_command(&front, args.program, own, &mut requests).await
        }
        None => Err(Hinted::new("no server is named")
            .hint("a server that runs already: skep proxy run --url URL")
            .hint("a program of this machine: skep proxy run -- COMMAND")
            .hint("skep proxy run IMAGE is for pods of the operator")
            .exit_code(USAGE)
            .into()),
    }
}

/// Refuses what no proxy could do anything with.
fn check_flags(args: &ProxyRunArgs) -> Result<(), Hinted> {
    if let Some(url) = &args.url {
        Target::remote(Dialect::Streamable, url).map_err(|error| {
            let problem = format!("--url: {error}");
            Hinted::new(problem).hint("write it like https://mcp.example.com/mcp").exit_code(USAGE)
        })?;
    }
    if let Some(origin) = args.origins.iter().find(|origin| !is_origin(origin)) {
        let problem = format!("--allow-origin: {origin:?} is no origin");
        return Err(Hinted::new(problem).hint("write it like https://hive.example").exit_code(USAGE));
    }
    if let Some(address) = args.redis.as_deref().filter(|address| RedisSettings::new(address).place().is_none()) {
        let problem = format!("--redis: {address:?} is not of the form host:port");
        return Err(Hinted::new(problem).hint("write it like 127.0.0.1:6379").exit_code(USAGE));
    }
    Ok(())
}

/// What the flags say about the side that clients see, and a document and the environment where they say nothing.
fn front(args: &ProxyRunArgs, config: Option<&RunConfig>, variables: Variables<'_>) -> anyhow::Result<Front> {
    let mut front = if let Some(config) = config {
        Front::of(config, variables)?
    } else {
        let mut usual = Front::at(LISTEN.ip().to_string(), 0, Dialect::Streamable);
        usual.read(variables)?;
        usual
    };
    if let Some(listen) = args.listen {
        (front.host, front.port) = (listen.ip().to_string(), listen.port());
    } else if front.port == 0 {
        front.port = LISTEN.port();
    }
    front.mode = match args.transport {
        Some(ProxyTransport::Sse) => Dialect::Sse,
        Some(ProxyTransport::StreamableHttp) => Dialect::Streamable,
        None => front.mode,
    };
    let redis = args.redis.as_deref().map(|address| {
        let usual = RedisSettings::new(address);
        let key_prefix = args.redis_key_prefix.clone().unwrap_or(usual.key_prefix);
        let password = variables(runner::SESSION_REDIS_PASSWORD).filter(|password| !password.is_empty());
        RedisSettings { database: args.redis_db, key_prefix, password, ..RedisSettings::new(address) }
    });
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(identity(certificate, key)?),
        _ => None,
    };
    front.eras = read_eras(&args.eras, variables)?;
    front.limits.request = args.request_timeout.unwrap_or(front.limits.request);
    front.origins.extend(args.origins.iter().cloned());
    front.redis = redis.or(front.redis);
    front.tls = tls;
    Ok(front)
}

fn identity(certificate: &Path, key: &Path) -> anyhow::Result<TlsIdentity> {
    let read = |flag: &str, path: &Path| {
        fs::read(path).map_err(|error| {
            Hinted::new(format!("{flag}: cannot read {}: {error}", path.display()))
                .hint("name a file in PEM that this user may read")
        })
    };
    let identity = TlsIdentity::from_pem(&read("--tls-cert", certificate)?, &read("--tls-key", key)?);
    Ok(identity.map_err(|error| {
        Hinted::new(format!("--tls-cert {}, --tls-key {}: {error}", certificate.display(), key.display())).hint(
            "the first file has the certificate of the proxy and those that vouch for it, the second its private key",
        )
    })?)
}
