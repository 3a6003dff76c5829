//! Folders whose content never gets onto a disk.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{Isolation, guard};
use crate::folder::{MODE, make_private};

/// Where the kernel keeps files in memory for everybody.
const SHARED_MEMORY: &str = "/dev/shm";
const PREFIX: &str = "skep-";

/// Makes a folder in memory that goes with this process. With namespaces it is at `path`, where nobody outside sees it;
/// without them it is somewhere among the shared memory.
pub fn memory_folder(isolation: Isolation, path: &Path) -> io::Result<PathBuf> {
    match isolation {
        Isolation::Namespaces => {
            make_private(path)?;
            let flags = rustix::mount::MountFlags::NOSUID | rustix::mount::MountFlags::NODEV;
            rustix::mount::mount("skep", path, "tmpfs", flags, c"mode=0711")?;
            Ok(path.to_owned())
        }
        Isolation::None => {
            let place = Path::new(SHARED_MEMORY);
            sweep(place)?;
            let (folder, lock) = make_locked(place)?;
            guard::start(&folder, lock.into())?;
            Ok(folder)
        }
    }
}

/// A new folder, and the lock that says that somebody uses it.
fn make_locked(place: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let folder = place.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
        // Everybody may make folders there: this one is new, and therefore nobody else's.
        DirBuilder::new().mode(MODE).create(&folder)?;
        let lock = File::open(&folder)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        // Somebody may have taken it for a leftover before it was locked.
        if folder.exists() {
            return Ok((folder, lock));
        }
    }
}

/// Removes folders of this user that nobody uses any more: their guards were killed, too.
fn sweep(place: &Path) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place)?.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        // What cannot be opened or removed is gone already, or no leftover.
        if is_ours
            && let Ok(folder) = File::open(entry.path())
            && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leftovers_are_swept_away() {
        let place = tempfile::tempdir().unwrap();
        let (used, lock) = make_locked(place.path()).unwrap();
        let (left, dead) = make_locked(place.path()).unwrap();
        fs::write(left.join("secret"), "word").unwrap();
        let foreign = place.path().join("other");
        fs::create_dir(&foreign).unwrap();
        drop(dead);
        sweep(place.path()).unwrap();
        assert!(used.exists() && foreign.exists() && !left.exists());
        drop(lock);
    }
}
