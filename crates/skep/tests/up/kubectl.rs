//! The real kubectl, on a machine of a test.

use std::path::PathBuf;
use std::process::Command;

use skep_conformance::control_plane::binaries_or_skip;

use super::machine::Machine;

pub(crate) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(crate) fn or_skip(test: &str) -> Option<PathBuf> {
        Some(binaries_or_skip(test)?.join("kubectl"))
    }

    pub(crate) fn of(machine: &Machine, program: PathBuf) -> Self {
        Self { program, kubeconfig: machine.folder.path().join("data/kubeconfig") }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command
    }

    /// What it prints, when it succeeds.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
