//! The group that the containers of a pod share their volumes by (`fsGroup`).

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;

/// Members may read what nobody writes.
const READ: u32 = 0o440;
/// And write to folders in which they do; what they make there belongs to the group again.
const FOLDER: u32 = 0o2770;
const READ_FOLDER: u32 = 0o2550;

/// The group, if the pod names one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share(Option<u32>);

impl Share {
    pub(super) fn of(pod: &Pod) -> Self {
        let security = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
        Self(security.and_then(|security| security.fs_group).and_then(|group| u32::try_from(group).ok()))
    }

    /// The mode of a file that is not written.
    pub(super) fn mode(self, mode: u32) -> u32 {
        if self.0.is_some() { mode | READ } else { mode }
    }

    /// Gives a folder to write in to the group.
    pub(super) fn give_folder(self, folder: &Path) -> io::Result<()> {
        self.give(folder, FOLDER)
    }

    /// Gives everything in a folder to the group, to read.
    pub(super) fn give_files(self, folder: &Path) -> io::Result<()> {
        if self.0.is_none() {
            return Ok(());
        }
        self.give(folder, READ_FOLDER)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.give_files(&entry.path())?;
            } else if kind.is_file() {
                self.give(&entry.path(), READ)?;
            }
        }
        Ok(())
    }

    fn give(self, path: &Path, more: u32) -> io::Result<()> {
        let Some(group) = self.0 else { return Ok(()) };
        match chown(path, None, Some(group)) {
            Ok(()) => {}
            // An ordinary user has no other groups, but is the owner whatever the number of the container's user.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EINVAL)) => {}
            Err(error) => return Err(error),
        }
        fs::set_permissions(path, Permissions::from_mode(fs::metadata(path)?.mode() & 0o7777 | more))
    }
}
