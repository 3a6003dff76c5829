//! A `skep up` under measurement.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::client;

/// The example that everybody starts with.
const MANIFEST: &str = include_str!("../../../examples/echo.yaml");
const POLL: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(30);

/// How long after its start something was so.
#[derive(Debug)]
pub(super) struct Moments {
    pub(super) api_server: Duration,
    pub(super) port: Duration,
    pub(super) answer: Duration,
}

/// A machine that runs. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Machine {
    child: Child,
    log: PathBuf,
}

impl Machine {
    /// Starts on the data in a folder, and waits for the first answer of a tool.
    pub(super) fn start(skep: &Path, folder: &Path) -> anyhow::Result<(Self, Moments)> {
        let address = free_address()?;
        let manifest = folder.join("echo.yaml");
        fs::write(&manifest, MANIFEST.replace("proxyPort: 8080", &format!("proxyPort: {}", address.port())))?;
        let kubeconfig = folder.join("data/kubeconfig");
        // Not that of an earlier start.
        let _ = fs::remove_file(&kubeconfig);
        let log = folder.join("log");
        let begun = Instant::now();
        let child = Command::new(skep)
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.join("data"))
            .arg("-f")
            .arg(&manifest)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", skep.display()))?;
        let mut machine = Self { child, log };
        machine.wait(begun, || kubeconfig.exists())?;
        let api_server = begun.elapsed();
        machine.wait(begun, || TcpStream::connect(address).is_ok())?;
        let port = begun.elapsed();
        machine.wait(begun, || client::call_echo(address).is_ok())?;
        Ok((machine, Moments { api_server, port, answer: begun.elapsed() }))
    }

    fn wait(&mut self, begun: Instant, done: impl Fn() -> bool) -> anyhow::Result<()> {
        while !done() {
            if self.child.try_wait()?.is_some() || begun.elapsed() > LIMIT {
                bail!("skep up did not serve: {}", fs::read_to_string(&self.log).unwrap_or_default());
            }
            sleep(POLL);
        }
        Ok(())
    }

    /// Asks it to end; how long that took.
    pub(super) fn stop(mut self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        ensure!(sent.success(), "skep up is gone");
        while self.child.try_wait()?.is_none() {
            ensure!(begun.elapsed() < LIMIT, "skep up does not end");
            sleep(POLL);
        }
        Ok(begun.elapsed())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nobody listens on at the moment.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
