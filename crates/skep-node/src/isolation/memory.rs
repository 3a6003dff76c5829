//! Folders whose content never gets onto a disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Isolation;

/// Where the kernel keeps files in memory for everybody.
const SHARED_MEMORY: &str = "/dev/shm";

/// Makes a folder in memory. With namespaces it is at `path`, which nobody outside sees, and goes with this process;
/// without them it is a folder of this process among the shared memory.
pub fn memory_folder(isolation: Isolation, path: &Path) -> io::Result<PathBuf> {
    let folder = match isolation {
        Isolation::Namespaces => {
            fs::create_dir_all(path)?;
            let flags = rustix::mount::MountFlags::NOSUID | rustix::mount::MountFlags::NODEV;
            rustix::mount::mount("skep", path, "tmpfs", flags, c"mode=0711")?;
            path.to_owned()
        }
        Isolation::None => Path::new(SHARED_MEMORY).join(format!("skep-{}", std::process::id())),
    };
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
