//! Attributes of whole trees of mounts.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::check;

const MOUNT_ATTR_RDONLY: u64 = 1;
const AT_RECURSIVE: libc::c_int = 0x8000;

/// What `mount_setattr` reads.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Makes a mount read-only, with or without those below it.
pub(crate) fn make_read_only(mount: BorrowedFd<'_>, recursive: bool) -> io::Result<()> {
    let attributes = MountAttributes { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a C string, and the structure has the layout and the size that the kernel is told.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    check(answer).map(drop)
}
