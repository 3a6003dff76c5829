//! Programs from npm, installed once into the cache.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use skep_conformance::skip::skip_outside_ci;

use crate::once;

/// Exactly what is installed. The suite and the newest revision need a newer Node than most machines have.
const PACKAGES: [&str; 3] =
    ["@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/sdk@1.32.2", "node@22.23.3"];
/// The second SDK, which speaks the revision whose requests stand alone.
const SECOND: [&str; 5] = [
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/server@2.4.0",
    "@modelcontextprotocol/node@2.1.2",
    "node@22.23.3",
    "zod@4.6.7",
];

/// A folder with the packages, and Node.
pub(crate) struct Packages {
    folder: PathBuf,
    node: PathBuf,
}

impl Packages {
    /// The packages, or nothing when this machine cannot have them; then the test is recorded as skipped.
    pub(crate) fn get(test: &str) -> Option<Self> {
        static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        Self::installed(test, INSTALLED.get_or_init(|| install(&PACKAGES)))
    }

    /// The second SDK.
    pub(crate) fn second(test: &str) -> Option<Self> {
        static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        Self::installed(test, INSTALLED.get_or_init(|| install(&SECOND)))
    }

    /// A version of the first SDK, for the same Node as the others.
    pub(crate) fn version(test: &str, version: &str) -> Option<Self> {
        let first = Self::get(test)?;
        let other = Self::installed(test, &install(&[format!("@modelcontextprotocol/sdk@{version}").as_str()]))?;
        Some(Self { node: first.node, ..other })
    }

    fn installed(test: &str, installed: &Result<PathBuf, String>) -> Option<Self> {
        match installed {
            Ok(folder) => Some(Self { folder: folder.clone(), node: folder.join("node_modules/.bin/node") }),
            Err(reason) => {
                skip_outside_ci(test, reason);
                None
            }
        }
    }

    /// Node, where it finds the packages.
    pub(crate) fn node(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.current_dir(&self.folder);
        command
    }

    /// A file of a package.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.folder.join("node_modules").join(path)
    }
}

fn install(packages: &[&str]) -> Result<PathBuf, String> {
    once::install("npm", &packages.join("+").replace('/', "-"), |folder| {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"]).arg(folder).args(packages);
        npm
    })
}
