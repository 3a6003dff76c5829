//! `skep api-server` as a process of its own, for tests and measurements from outside.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use kube::Client;

use crate::control_plane::{self, ControlPlaneError};
use crate::process::Process;

/// A tenth of a second is usual; the rest is for a machine that is busy building.
const START_LIMIT: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(1);
/// What the server says once it listens and its kubeconfig is written.
const SERVING: &str = "serving https://";

/// A running server. Dropping it kills it, as `kill -9` does; its folder stays.
#[derive(Debug)]
pub struct ApiServer {
    process: Process,
    data: PathBuf,
    ready_after: Duration,
}

impl ApiServer {
    /// Starts the program on the data in `<folder>/data`, on a free loopback port, and waits until it is ready.
    pub async fn start(program: &Path, folder: &Path) -> Result<Self, ControlPlaneError> {
        let data = folder.join("data");
        let arguments = ["api-server", "--data-dir", &data.display().to_string(), "--listen", "127.0.0.1:0"];
        let begun = Instant::now();
        let process = Process::start("skep", program, &arguments.map(str::to_owned), folder)
            .map_err(|source| ControlPlaneError::Spawn { name: "skep", source })?;
        let mut server = Self { process, data, ready_after: Duration::ZERO };
        while !server.process.output().contains(SERVING) {
            if let Some(last_words) = server.process.last_words() {
                return Err(ControlPlaneError::Died(last_words));
            }
            if begun.elapsed() > START_LIMIT {
                return Err(ControlPlaneError::Timeout { after: START_LIMIT, waiting_for: "skep api-server" });
            }
            tokio::time::sleep(POLL).await;
        }
        let ready = http::Request::get("/readyz").body(Vec::new());
        let ready = ready.map_err(|error| ControlPlaneError::Client(error.to_string()))?;
        let answer = server.admin().await?.request_text(ready).await;
        answer.map_err(|error| ControlPlaneError::Client(error.to_string()))?;
        server.ready_after = begun.elapsed();
        Ok(server)
    }

    /// How long it took from the start of the process to its first answer.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    /// The kubeconfig of somebody who may do everything.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.data.join("kubeconfig")
    }

    /// A client that may do everything, with connections of its own.
    pub async fn admin(&self) -> Result<Client, ControlPlaneError> {
        let document = fs::read_to_string(self.admin_kubeconfig())
            .map_err(|error| ControlPlaneError::Client(error.to_string()))?;
        control_plane::client(&document).await
    }

    /// What the process holds in memory, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.process.resident_bytes().unwrap_or_default()
    }

    /// The size of its data on the disk, in bytes.
    pub fn data_bytes(&self) -> io::Result<u64> {
        folder_bytes(&self.data)
    }
}

fn folder_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
