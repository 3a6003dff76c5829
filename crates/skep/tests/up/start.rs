//! How a machine of a test is started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::machine::Machine;

/// A `skep up` to come.
pub(crate) struct Start {
    pub(crate) folder: TempDir,
    isolation: Option<&'static str>,
    variables: Vec<(&'static str, OsString)>,
    /// What runs the program.
    through: Vec<&'static str>,
    program: PathBuf,
}

/// A user who may do nothing, and what makes a program run as that one.
const NOBODY: u32 = 65_534;
const AS_NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

impl Start {
    pub(crate) fn new() -> Self {
        Self::on(TempDir::new().unwrap())
    }

    /// On a folder that may have a past.
    pub(crate) fn on(folder: TempDir) -> Self {
        Self {
            folder,
            isolation: Some("namespaces"),
            variables: Vec::new(),
            through: Vec::new(),
            program: env!("CARGO_BIN_EXE_skep").into(),
        }
    }

    pub(crate) fn variable(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// How pods are kept apart; without a word, it finds out.
    pub(crate) fn isolation(self, isolation: Option<&'static str>) -> Self {
        Self { isolation, ..self }
    }

    /// Through another program, which runs it.
    pub(crate) fn through(self, command: &[&'static str]) -> Self {
        Self { through: command.to_vec(), ..self }
    }

    /// As a user without any rights, if this one may become that.
    pub(crate) fn by_nobody(mut self) -> Option<Self> {
        let tried = Command::new(AS_NOBODY[0]).args(&AS_NOBODY[1..]).arg("true").output();
        tried.ok().filter(|output| output.status.success())?;
        // That user may not come where the program was built.
        let program = self.folder.path().join("skep");
        fs::copy(&self.program, &program).unwrap();
        std::os::unix::fs::chown(self.folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        self.program = program;
        Some(self.through(&AS_NOBODY))
    }

    /// Begins, and waits for nothing.
    pub(crate) fn spawn(self) -> (TempDir, Child) {
        let folder = self.folder.path();
        let images =
            "images:\n- image: shell\n  command: [/bin/sh, -c]\n- image: missing-program\n  command: [/no/such]\n";
        fs::write(folder.join("images.yaml"), images).unwrap();
        let _ = fs::remove_file(folder.join("data/kubeconfig"));
        let log = fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
        let mut line = self.through.iter().map(OsStr::new).chain([self.program.as_os_str()]);
        let mut command = Command::new(line.next().unwrap());
        command.args(line).args(["up", "--no-demo", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.join("data"));
        command.arg("--image-map").arg(folder.join("images.yaml"));
        command.args(self.isolation.into_iter().flat_map(|kind| ["--isolation", kind]));
        command.envs(self.variables).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().unwrap();
        (self.folder, child)
    }

    pub(crate) async fn now(self) -> Machine {
        self.try_now().await.unwrap()
    }

    /// What it said, when it did not come up.
    pub(crate) async fn try_now(self) -> Result<Machine, String> {
        let (folder, child) = self.spawn();
        Machine::of(folder, child).await
    }

    /// Starts, or says that the kernel does not let it.
    pub(crate) async fn or_skip(self, test: &str) -> Option<Machine> {
        match self.try_now().await {
            Ok(machine) => Some(machine),
            Err(said) if said.contains("the kernel refuses") => {
                skep_conformance::skip::skip(test, said.trim());
                None
            }
            Err(said) => panic!("not started: {said}"),
        }
    }
}
