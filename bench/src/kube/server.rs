//! A server under measurement.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kube::Client;
use skep_conformance::api_server::ApiServer;
use skep_conformance::control_plane::{BINARIES_VARIABLE, ControlPlane};
use tempfile::TempDir;

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Ours,
    Real,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "skep",
            Self::Real => "kube-apiserver + etcd",
        }
    }
}

/// A running server with nothing in it, gone when dropped.
#[derive(Debug)]
pub(super) enum Server {
    Ours { server: ApiServer, _folder: TempDir },
    Real { server: Box<ControlPlane>, ready_after: Duration },
}

impl Server {
    pub(super) async fn start(kind: Kind, skep: &Path) -> anyhow::Result<Self> {
        match kind {
            Kind::Ours => {
                let folder = tempfile::tempdir()?;
                let server = ApiServer::start(skep, folder.path()).await?;
                Ok(Self::Ours { server, _folder: folder })
            }
            Kind::Real => {
                let binaries = std::env::var_os(BINARIES_VARIABLE).with_context(|| {
                    format!("no real server: set {BINARIES_VARIABLE}=\"$(cargo xtask control-plane)\", or use --alone")
                })?;
                let begun = Instant::now();
                let server = ControlPlane::start_durable(Path::new(&binaries)).await?;
                Ok(Self::Real { server: Box::new(server), ready_after: begun.elapsed() })
            }
        }
    }

    /// From the start of the process to its first answer.
    pub(super) fn ready_after(&self) -> Duration {
        match self {
            Self::Ours { server, .. } => server.ready_after(),
            Self::Real { ready_after, .. } => *ready_after,
        }
    }

    /// A client with a connection of its own.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        Ok(match self {
            Self::Ours { server, .. } => server.admin().await?,
            Self::Real { server, .. } => server.admin().await?,
        })
    }

    pub(super) async fn clients(&self, count: usize) -> anyhow::Result<Vec<Client>> {
        let mut clients = Vec::new();
        for _ in 0..count {
            clients.push(self.client().await?);
        }
        Ok(clients)
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        match self {
            Self::Ours { server, .. } => server.resident_bytes(),
            Self::Real { server, .. } => server.resident_bytes(),
        }
    }
}
