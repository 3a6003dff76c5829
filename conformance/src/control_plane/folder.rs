//! The folder of a control plane, locked as long as its owner lives.
//!
//! What a test program leaves behind that was killed holds keys and a hundred megabytes; the next to come removes it. The
//! lock tells whose owner is gone. A process id would not: other test programs may be in namespaces of their own.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "skep-cluster-of-test-";

/// A temporary folder that nobody else removes. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Folder {
    // Dropped in this order: a folder without a lock is anybody's.
    folder: TempDir,
    _lock: File,
}

impl Folder {
    /// A new one among all temporary files.
    pub(super) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        for entry in fs::read_dir(place)?.flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
                remove_orphan(&entry.path());
            }
        }
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
            // Somebody who looks for orphans may be faster than we are, before it is opened or before it is locked.
            let lock = match File::open(folder.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            lock.lock()?;
            if folder.path().exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes a folder if nobody holds its lock. Another test may be faster, and a folder of another user is not ours.
fn remove_orphan(path: &Path) {
    if let Ok(lock) = File::open(path)
        && lock.try_lock().is_ok()
    {
        let _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_when_its_owner_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let orphan = place.path().join(format!("{PREFIX}orphan"));
        fs::create_dir_all(orphan.join("etcd")).unwrap();
        fs::create_dir(place.path().join("foreign")).unwrap();
        let first = Folder::new_in(place.path()).unwrap();
        assert!(!orphan.exists());
        let second = Folder::new_in(place.path()).unwrap();
        assert!(first.path().exists() && second.path().exists() && place.path().join("foreign").exists());
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
