//! `skep api-server`.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::Context as _;
use ipnet::Ipv4Net;

use crate::api_server::ApiServer;
use crate::cli::ApiServerArgs;
use crate::hint::Hinted;
use crate::service_range::Chosen;
use crate::shell;
use crate::stop::Stop;

/// Where the server keeps its data, where it listens, and what else it is called.
#[derive(Debug)]
pub struct Settings {
    data: PathBuf,
    listen: SocketAddr,
    names: Vec<String>,
    service_range: Option<Ipv4Net>,
}

impl From<ApiServerArgs> for Settings {
    fn from(args: ApiServerArgs) -> Self {
        Self { data: args.data_dir, listen: args.listen, names: args.tls_names, service_range: args.service_range }
    }
}

pub(super) fn run(settings: &Settings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    let mut stop = Stop::new()?;
    let listener = TcpListener::bind(settings.listen).map_err(|error| {
        Hinted::new(format!("cannot listen on {}: {error}", settings.listen))
            .hint("choose another address with --listen, or port 0 for any that is free")
    })?;
    fs::create_dir_all(&settings.data).with_context(|| format!("cannot create {}", settings.data.display()))?;
    let services = Chosen::new(&settings.data, settings.service_range)?;
    let server = ApiServer::start(&settings.data, listener, &settings.names, services).await?;
    eprintln!("serving https://{}; export KUBECONFIG={}", server.address(), shell::word(server.kubeconfig()));
    stop.asked().await;
    server.stop().await;
    Ok(())
}
