//! Reading and writing the files: whole or not at all, and private where they must be.
//!
//! What is written can be held back until everything has been looked at, so that a folder that something is wrong with
//! stays as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::PkiError;

/// No file of ours comes near this.
const LARGEST_FILE: u64 = 1024 * 1024;

/// The files as they are, or as they will be.
pub(super) struct Files {
    /// In the order in which they are to be written. None: what is written is written at once.
    held: Mutex<Option<Vec<Held>>>,
}

struct Held {
    path: PathBuf,
    text: String,
    mode: u32,
    /// There was no such file when this was decided. One that has come since then was made by somebody else.
    is_first: bool,
}

/// Keys are not shown.
impl std::fmt::Debug for Files {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Files {
    /// Files that are held back until they are released.
    pub(super) fn held() -> Self {
        Self { held: Mutex::new(Some(Vec::new())) }
    }

    /// Writes what was held back. From then on nothing is.
    pub(super) fn release(&self) -> Result<(), PkiError> {
        for file in self.held.lock().take().into_iter().flatten() {
            file.write()?;
        }
        Ok(())
    }

    /// The text of a file, or `None` when there is no such file.
    pub(super) fn read(&self, path: &Path) -> Result<Option<String>, PkiError> {
        if let Some(held) = self.held.lock().iter().flatten().find(|held| held.path == path) {
            return Ok(Some(held.text.clone()));
        }
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
    pub(super) fn write_private(&self, path: &Path, text: &str) -> Result<(), PkiError> {
        self.write(path, text, 0o600)
    }

    pub(super) fn write_public(&self, path: &Path, text: &str) -> Result<(), PkiError> {
        self.write(path, text, 0o644)
    }

    fn write(&self, path: &Path, text: &str, mode: u32) -> Result<(), PkiError> {
        let file = Held { path: path.to_owned(), text: text.to_owned(), mode, is_first: !path.exists() };
        match &mut *self.held.lock() {
            Some(held) => {
                held.retain(|held| held.path != path);
                held.push(file);
                Ok(())
            }
            None => file.write(),
        }
    }
}

impl Held {
    fn write(self) -> Result<(), PkiError> {
        self.replace().map_err(|source| PkiError::Write { path: self.path, source })
    }

    /// Writes beside the file and renames, so that nobody ever sees half of it, or a private one that is not.
    fn replace(&self) -> io::Result<()> {
        if self.is_first && self.path.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let beside = self.path.with_file_name(name);
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(self.mode).open(&beside)?;
        file.write_all(self.text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        if let Some(folder) = folder {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}
