//! Reading and writing the files: whole or not at all, and private where they must be.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::PkiError;

/// No file of ours comes near this.
const LARGEST_FILE: u64 = 1024 * 1024;

pub(super) fn create_folder(folder: &Path) -> Result<(), PkiError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| PkiError::Write { path: folder.to_owned(), source })
}

/// The text of a file, or `None` when there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, PkiError> {
    let failed = |source| PkiError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    let mut text = String::new();
    file.take(LARGEST_FILE).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

/// Writes a file that only its owner can read.
pub(super) fn write_private(path: &Path, text: &str) -> Result<(), PkiError> {
    write(path, text, 0o600)
}

pub(super) fn write_public(path: &Path, text: &str) -> Result<(), PkiError> {
    write(path, text, 0o644)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), PkiError> {
    replace(path, text, mode).map_err(|source| PkiError::Write { path: path.to_owned(), source })
}

/// Writes beside the file and renames, so that nobody ever sees half of it, or a private one that is not.
fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
