//! A data folder of a test's own, and the commands on it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

/// Far more than it takes, for machines that are busy building.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// A folder on which something may run. It is stopped at the end.
pub(crate) struct Here {
    pub(crate) folder: TempDir,
}

impl Here {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A command on the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin!("skep"));
        command.args(arguments).arg("--data-dir").arg(self.data()).stdin(Stdio::null());
        command
    }

    /// Runs a command on the folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::new(self.command(arguments).output())
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}\n{}", self.log());
        said.stdout
    }

    /// Starts in the background.
    pub(crate) fn up(&self, arguments: &[&str]) -> String {
        self.done(&[&["up", "--detach", "--listen", "127.0.0.1:0"], arguments].concat())
    }

    /// Writes a manifest and returns its path.
    pub(crate) fn manifest(&self, name: &str, objects: &[Value]) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn status(&self) -> Vec<Value> {
        serde_json::from_str(&self.done(&["status", "-o", "json"])).unwrap()
    }

    /// The status, once it is as it should be.
    pub(crate) fn status_when(&self, what: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(begun.elapsed() < LIMIT, "not so: {what}\n{status:#?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Runs a command until it succeeds.
    pub(crate) fn until_done(&self, arguments: &[&str]) {
        self.until_printed("it succeeds", arguments, |_| true);
    }

    /// Runs a command until it succeeds and prints what it should.
    pub(crate) fn until_printed(&self, what: &str, arguments: &[&str], holds: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let said = self.run(arguments);
            if said.code == Some(0) && holds(&said.stdout) {
                return;
            }
            assert!(begun.elapsed() < LIMIT, "not so: {what}\n{said:?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.data().join("log")).unwrap_or_default()
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.command(&["down", "--force"]).output();
    }
}

/// What a command said at its end.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn new(output: io::Result<Output>) -> Self {
        let output = output.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The demo server as a Deployment with a service at a port.
pub(crate) fn echo(name: &str, port: u16) -> [Value; 2] {
    let container = json!({"name": "echo", "image": "skep-demo/echo", "imagePullPolicy": "IfNotPresent",
        "args": ["--transport", "streamable-http", "--host", "0.0.0.0", "--port", port.to_string()],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1}});
    [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"name": "web", "port": port}]}}),
    ]
}
