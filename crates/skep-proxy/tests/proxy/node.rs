//! Servers of packages from npm, each in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use skep_conformance::skip::skip_outside_ci;

use crate::{once, provider};

/// The program that runs them. Some packages need a newer one than most machines have.
const NODE: &str = "node@22.23.3";

/// A server that prints its port when it listens.
pub(crate) struct Node {
    child: Child,
    pub(crate) address: String,
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that has ended already is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Node {
    /// What a script makes of exactly this package, or nothing when this machine cannot have it; then the test is recorded
    /// as skipped.
    pub(crate) fn start(test: &str, package: &str, script: &str) -> Option<Self> {
        let packages = [package, NODE];
        let installed = once::install("npm", &packages.join("+"), |folder| {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"])
                .arg(folder)
                .args(packages);
            npm
        });
        let folder = installed.map_err(|reason| skip_outside_ci(test, &reason)).ok()?;
        Some(Self::run(&folder, script))
    }

    /// What a script makes of the packages in a folder.
    pub(crate) fn run(folder: &Path, script: &str) -> Self {
        let mut node = Command::new(folder.join(provider::NODE));
        node.args(["--input-type=module", "--eval", script]).current_dir(folder);
        let mut child = node.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: format!("127.0.0.1:{}", line.trim()) }
    }
}
