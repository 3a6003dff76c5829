//! A real Redis: for tests, with data that outlives its process; for measurements, without.

use std::io;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::ports::free_ports;
use crate::process::Process;
use crate::skip::skip_outside_ci;

const PROGRAM: &str = "redis-server";
const POLL: Duration = Duration::from_millis(10);
const LIMIT: Duration = Duration::from_secs(30);

/// What clients of it have to say.
pub const PASSWORD: &str = "a secret of tests";

/// A Redis on a port of loopback, gone when dropped.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    port: u16,
    purpose: Purpose,
    process: Option<Process>,
}

/// What it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It writes everything to the disk at once, and asks for a password.
    Test,
    /// The same, as a part of a cluster that has no keys yet.
    Cluster,
    /// It lets everybody in and writes nothing to the disk.
    Measurement,
}

impl RedisServer {
    /// A server for a test. Where there is no Redis, the test is recorded as skipped and gets nothing.
    ///
    /// # Panics
    ///
    /// When a CI run has no Redis, which would hide the test.
    pub fn start(test: &str) -> Option<Self> {
        Self::start_for(test, Purpose::Test)
    }

    /// The same as a part of a cluster, which is still to be told which keys it has. It has one database.
    ///
    /// # Panics
    ///
    /// As [`RedisServer::start`].
    pub fn start_clustered(test: &str) -> Option<Self> {
        Self::start_for(test, Purpose::Cluster)
    }

    #[expect(clippy::panic, reason = "it runs in tests only, and failing the test is its purpose")]
    fn start_for(test: &str, purpose: Purpose) -> Option<Self> {
        if !is_installed(test) {
            return None;
        }
        match Self::try_start(purpose) {
            Ok(server) => Some(server),
            Err(error) => panic!("cannot start {PROGRAM}: {error}"),
        }
    }

    /// A server that lets everybody in and writes nothing to the disk, so that only what asks it is measured.
    pub fn volatile() -> io::Result<Self> {
        Self::try_start(Purpose::Measurement)
    }

    fn try_start(purpose: Purpose) -> io::Result<Self> {
        // Parts of a cluster speak to each other at the second.
        let [port, _] = free_ports()?;
        let mut server = Self { folder: tempfile::tempdir()?, port, purpose, process: None };
        server.resume()?;
        Ok(server)
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills it. Its data stay.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it again on its data.
    pub fn resume(&mut self) -> io::Result<()> {
        let folder = self.folder.path();
        let (port, folder_name) = (self.port.to_string(), folder.display().to_string());
        let next_port = (self.port + 1).to_string();
        let always = [("bind", "127.0.0.1"), ("port", &*port), ("dir", &*folder_name), ("save", "")];
        let durable = [("requirepass", PASSWORD), ("appendonly", "yes"), ("appendfsync", "always")];
        let cluster = [("cluster-enabled", "yes"), ("cluster-port", &*next_port)];
        let settings = always.into_iter();
        let settings = settings.chain(durable.into_iter().filter(|_| self.purpose != Purpose::Measurement));
        let settings = settings.chain(cluster.into_iter().filter(|_| self.purpose == Purpose::Cluster));
        let arguments: Vec<String> =
            settings.flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]).collect();
        let mut process = Process::start("redis", Path::new(PROGRAM), &arguments, folder)?;
        let begun = Instant::now();
        while !process.output().contains("Ready to accept connections") || TcpStream::connect(self.address()).is_err() {
            if let Some(last_words) = process.last_words() {
                return Err(io::Error::other(last_words));
            }
            if begun.elapsed() > LIMIT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(POLL);
        }
        self.process = Some(process);
        Ok(())
    }
}

/// Whether this machine has Redis. Where there is none, the test is recorded as skipped.
///
/// # Panics
///
/// When a CI run has no Redis, which would hide the test.
pub fn is_installed(test: &str) -> bool {
    let version = Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_here = version.is_ok_and(|status| status.success());
    if !is_here {
        skip_outside_ci(test, "no redis-server (apt-get install redis-server)");
    }
    is_here
}
