//! Where things are.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
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
