//! Folders whose content never gets onto a disk.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{self, Path, PathBuf};

use super::Isolation;
use crate::folder::make_private;

/// Where the kernel keeps files in memory for everybody.
const SHARED_MEMORY: &str = "/dev/shm";

/// Makes a folder in memory. With namespaces it is at `path`, which nobody outside sees, and goes with this process;
/// without them it is among the shared memory, the same for the same `path`, and the next to come finds what is left.
pub fn memory_folder(isolation: Isolation, path: &Path) -> io::Result<PathBuf> {
    let folder = match isolation {
        Isolation::Namespaces => {
            make_private(path)?;
            let flags = rustix::mount::MountFlags::NOSUID | rustix::mount::MountFlags::NODEV;
            rustix::mount::mount("skep", path, "tmpfs", flags, c"mode=0711")?;
            path.to_owned()
        }
        Isolation::None => {
            let mut hasher = DefaultHasher::new();
            path::absolute(path)?.hash(&mut hasher);
            Path::new(SHARED_MEMORY).join(format!("skep-{:016x}", hasher.finish()))
        }
    };
    fs::create_dir_all(&folder)?;
    // Everybody may make folders there, and secrets must not get into somebody else's.
    if fs::metadata(&folder)?.uid() != rustix::process::geteuid().as_raw() {
        let told = format!("{} belongs to another user", folder.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, told));
    }
    make_private(&folder)?;
    Ok(folder)
}
