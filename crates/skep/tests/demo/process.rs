//! A demo server in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use snapbox::cmd::cargo_bin;

/// The command, without anything of the environment that could change it.
pub(crate) fn command(transport: &str) -> Command {
    let mut command = Command::new(cargo_bin!("skep"));
    command.args(["demo", "echo", "--transport", transport, "--host", "127.0.0.1", "--port", "0"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server that listens.
pub(crate) struct Server {
    child: Child,
    /// Host and port.
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(transport: &str) -> Self {
        Self::run(command(transport))
    }

    /// One that speaks a single revision.
    pub(crate) fn of_revision(transport: &str, revision: &str) -> Self {
        let mut command = command(transport);
        command.args(["--revision", revision]);
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("serving http://").and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("unexpected first line: {line}")).to_owned();
        Self { child, address }
    }

    /// A server of somebody else, which prints its port.
    pub(crate) fn foreign(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: format!("127.0.0.1:{}", line.trim()) }
    }

    /// Asks the server to stop, and tells how long that took.
    pub(crate) fn stop(&mut self) -> Duration {
        let started = Instant::now();
        terminate(&self.child);
        assert!(self.child.wait().unwrap().success());
        started.elapsed()
    }

    /// The memory it holds, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        4096 * pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has stopped already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGTERM.
pub(crate) fn terminate(child: &Child) {
    let status = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}
