//! Empty folders that live as long as their pod (`emptyDir`).

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::EmptyDirVolumeSource;
use rustix::mount::{MountFlags, UnmountFlags};
use skep_kube::builtin::Quantity;

use super::Folders;
use super::share::Share;

/// Files count in blocks of this size, whatever those of the disk are.
const BLOCK: u64 = 512;

/// One such folder.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    in_memory: bool,
    limit: Option<Limit>,
    /// It is a file system of its own, which has to be taken off in the end.
    mounted: bool,
}

/// How much may be in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    /// As the pod writes it.
    text: String,
    bytes: u64,
}

/// A folder whose content is to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounded {
    pub(crate) volume: String,
    pub(crate) limit: String,
    path: PathBuf,
    bytes: u64,
}

impl Bounded {
    /// Whether there is more in it than there may be. Looks at every file.
    pub(crate) fn is_exceeded(&self) -> bool {
        used(&self.path) > self.bytes
    }
}

impl Scratch {
    pub(super) fn new(source: &EmptyDirVolumeSource) -> Self {
        let limit = source.size_limit.as_ref().and_then(|limit| {
            let milli = Quantity::parse(&limit.0)?.milli();
            let bytes = u64::try_from(milli / 1_000).ok().filter(|bytes| *bytes > 0)?;
            Some(Limit { text: limit.0.clone(), bytes })
        });
        Self { in_memory: source.medium.as_deref() == Some("Memory"), limit, mounted: false }
    }

    fn path(&self, folders: &Folders, name: &str) -> PathBuf {
        if self.in_memory { folders.memory.join(name) } else { folders.disk.join(name) }
    }

    pub(super) fn make(&mut self, folders: &Folders, name: &str, share: Share) -> io::Result<PathBuf> {
        let path = self.path(folders, name);
        let is_new = !path.exists();
        fs::create_dir_all(&path)?;
        if let Some(limit) = self.limit.as_ref().filter(|_| self.in_memory && folders.can_mount && !self.mounted) {
            let options = std::ffi::CString::new(format!("size={}", limit.bytes))?;
            rustix::mount::mount("skep", &path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, &*options)?;
            self.mounted = true;
        }
        if is_new {
            // Containers may run as any user.
            fs::set_permissions(&path, Permissions::from_mode(0o777))?;
            share.give_folder(&path)?;
        }
        Ok(path)
    }

    /// The folder, when it has to be watched: one that the kernel limits need not be.
    pub(super) fn bounded(&self, folders: &Folders, name: &str) -> Option<Bounded> {
        let limit = self.limit.as_ref().filter(|_| !self.in_memory || !folders.can_mount)?;
        let path = self.path(folders, name);
        Some(Bounded { volume: name.to_owned(), limit: limit.text.clone(), path, bytes: limit.bytes })
    }

    pub(super) fn take_off(&mut self, folders: &Folders, name: &str) {
        if std::mem::take(&mut self.mounted)
            && let Err(error) = rustix::mount::unmount(self.path(folders, name), UnmountFlags::DETACH)
        {
            tracing::warn!(volume = name, %error, "volume not taken off");
        }
    }
}

/// What the files below a folder take. What vanishes meanwhile takes nothing.
fn used(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| {
        let Ok(metadata) = entry.metadata() else { return 0 };
        let below = if metadata.is_dir() { used(&entry.path()) } else { 0 };
        below.saturating_add(metadata.blocks().saturating_mul(BLOCK))
    });
    sizes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    fn scratch(source: serde_json::Value) -> Scratch {
        Scratch::new(&serde_json::from_value(source).unwrap())
    }

    #[test]
    fn a_folder_with_too_much_in_it_is_noticed() {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let folders = Folders { memory: path("memory"), disk: path("disk"), can_mount: false };
        for source in [json!({"sizeLimit": "64Ki"}), json!({"sizeLimit": "64Ki", "medium": "Memory"})] {
            let mut scratch = scratch(source);
            let made = scratch.make(&folders, "v", Share::default()).unwrap();
            let bounded = scratch.bounded(&folders, "v").unwrap();
            fs::create_dir(made.join("deep")).unwrap();
            fs::write(made.join("deep/little"), vec![1; 16 * 1024]).unwrap();
            assert!(!bounded.is_exceeded());
            fs::write(made.join("deep/much"), vec![1; 64 * 1024]).unwrap();
            assert!(bounded.is_exceeded());
            assert_eq!(bounded.limit, "64Ki");
        }
        assert!(path("memory/v/deep").exists() && path("disk/v/deep").exists());
    }

    #[test]
    fn what_the_kernel_limits_is_not_watched() {
        let folders = Folders { memory: "/m".into(), disk: "/d".into(), can_mount: true };
        assert_eq!(scratch(json!({"sizeLimit": "1Mi", "medium": "Memory"})).bounded(&folders, "v"), None);
        assert_eq!(scratch(json!({})).bounded(&folders, "v"), None);
        assert_eq!(scratch(json!({"sizeLimit": "0"})).bounded(&folders, "v"), None);
    }
}
