//! Where things are.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::Context as _;

/// The root of the workspace that cargo runs us for: clones that share a target folder share this program, so the one
/// that it was built in may be gone.
pub(crate) fn root() -> &'static Path {
    static HERE: LazyLock<PathBuf> = LazyLock::new(|| {
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
    });
    HERE.parent().unwrap_or(&HERE)
}

/// The cargo that runs us.
pub(crate) fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// A folder outside the clone for what is expensive to make: `SKEP_CACHE_DIR`, else the user's cache folder.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("SKEP_CACHE_DIR") {
        return Ok(folder.into());
    }
    if let Some(folder) = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()) {
        return Ok(Path::new(&folder).join("skep"));
    }
    let home = std::env::var_os("HOME").context("HOME is not set; set SKEP_CACHE_DIR to a folder for build results")?;
    Ok(Path::new(&home).join(".cache/skep"))
}
