//! What tests need from a registry of packages, installed once into the cache.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What installers say when there is no network.
const OFFLINE: [&str; 9] = [
    "Could not resolve host",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "ENETUNREACH",
    "NewConnectionError",
    "dns error",
];

/// The sign of a missing network in what an installer has said.
pub(crate) fn is_offline(told: &str) -> Option<&'static str> {
    OFFLINE.into_iter().find(|sign| told.contains(sign))
}

/// A folder of the cache that the command fills, or the reason why this machine cannot have it.
pub(crate) fn install(tool: &str, name: &str, command: impl FnOnce(&Path) -> Command) -> Result<PathBuf, String> {
    let cache = cache().join(tool);
    let folder = cache.join(name);
    if folder.exists() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&cache).unwrap();
    // Installed beside its final place and renamed, so that an installation that was cut off is never taken for one.
    let unfinished = tempfile::Builder::new().prefix("installing-").tempdir_in(&cache).unwrap();
    let output = command(unfinished.path()).output().map_err(|error| format!("{tool} is not installed ({error})"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let sign = is_offline(&told).unwrap_or_else(|| panic!("{tool}: {told}"));
        return Err(format!("{tool} cannot reach its registry ({sign})"));
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
