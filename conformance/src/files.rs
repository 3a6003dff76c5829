//! Reading the files of a suite.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Why a file of a suite cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} cannot be understood: {message}", path.display())]
    Parse { path: PathBuf, message: String },
}

pub(crate) fn read(path: &Path) -> Result<String, LoadError> {
    fs::read_to_string(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })
}

/// What is in a folder, in the order of names.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let failed = |source| LoadError::Read { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn file_stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
