//! Programs from npm, installed once into the cache.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use skep_conformance::skip::skip;

/// Exactly what is installed. The suite and the newest revision need a newer Node than most machines have.
const PACKAGES: [&str; 3] =
    ["@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/sdk@1.32.2", "node@22.23.3"];

/// What npm says when there is no network.
const OFFLINE: [&str; 6] = ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH"];

/// A folder with the packages.
pub(crate) struct Packages(PathBuf);

impl Packages {
    /// The packages, or nothing when this machine cannot have them; then the test is recorded as skipped.
    pub(crate) fn get(test: &str) -> Option<Self> {
        static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match INSTALLED.get_or_init(install) {
            Ok(folder) => Some(Self(folder.clone())),
            Err(reason) => {
                skip(test, reason);
                None
            }
        }
    }

    /// Node, where it finds the packages.
    pub(crate) fn node(&self) -> Command {
        let mut command = Command::new(self.0.join("node_modules/.bin/node"));
        command.current_dir(&self.0);
        command
    }

    /// A file of a package.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.0.join("node_modules").join(path)
    }
}

fn install() -> Result<PathBuf, String> {
    let cache = cache().join("npm");
    let folder = cache.join(PACKAGES.join("+").replace('/', "-"));
    if folder.exists() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&cache).unwrap();
    // Installed beside its final place and renamed, so that an installation that was cut off is never taken for one.
    let unfinished = tempfile::Builder::new().prefix("installing-").tempdir_in(&cache).unwrap();
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix"])
        .arg(unfinished.path())
        .args(PACKAGES)
        .output()
        .map_err(|error| format!("npm is not installed ({error})"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let reason = OFFLINE.iter().find(|code| told.contains(**code)).unwrap_or_else(|| panic!("npm install: {told}"));
        return Err(format!("npm cannot reach its registry ({reason})"));
    }
    publish(&unfinished.keep(), &folder);
    Ok(folder)
}

/// Another run may have finished the same installation in the meantime; its result is as good as ours.
fn publish(unfinished: &Path, folder: &Path) {
    if let Err(error) = std::fs::rename(unfinished, folder) {
        assert!(folder.exists(), "cannot move the packages to {}: {error}", folder.display());
        std::fs::remove_dir_all(unfinished).unwrap();
    }
}

/// The folder for what is expensive to make, the same that `cargo xtask` uses.
fn cache() -> PathBuf {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("SKEP_CACHE_DIR")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("skep")))
        .or_else(|| Some(variable("HOME")?.join(".cache/skep")))
        .unwrap()
}
