//! The operator in a process of its own, as it is shipped.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use skep_conformance::process::Process;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::counts::Counts;

const START_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// An operator that runs, killed when dropped.
#[derive(Debug)]
pub(super) struct Operator {
    process: Process,
    metrics: SocketAddr,
}

impl Operator {
    /// Starts it for one namespace, and waits until its metrics are served.
    pub(super) async fn start(skep: &Path, kubeconfig: &Path, namespace: &str, logs: &Path) -> anyhow::Result<Self> {
        let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let arguments = [
            format!("WATCH_NAMESPACE={namespace}"),
            skep.display().to_string(),
            "operator".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--metrics-bind-address={metrics}"),
            "--health-probe-bind-address=0".to_owned(),
        ];
        let process = Process::start("skep-operator", Path::new("/usr/bin/env"), &arguments, logs)?;
        let mut operator = Self { process, metrics };
        let begun = Instant::now();
        while operator.counts().await.is_err() {
            ensure!(begun.elapsed() < START_LIMIT, "the operator does not serve its metrics");
            if let Some(words) = operator.process.last_words() {
                anyhow::bail!(words);
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(operator)
    }

    pub(super) async fn counts(&self) -> anyhow::Result<Counts> {
        let mut stream = TcpStream::connect(self.metrics).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        ensure!(text.starts_with("HTTP/1.1 200 "), "{text}");
        Ok(Counts::read(&text))
    }

    pub(super) fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.process.resident_bytes().context("the operator is gone")
    }
}
