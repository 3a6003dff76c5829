//! Descriptors that a process is born with.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use super::check;

/// The number under which a helper finds the channel to its parent.
pub(crate) const HELPER_CHANNEL: RawFd = 3;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the one descriptor that this process was started with, if it is open. Only the first call gets it.
pub(crate) fn take_inherited(number: RawFd) -> Option<OwnedFd> {
    if number < HELPER_CHANNEL || TAKEN.swap(true, Ordering::SeqCst) {
        return None;
    }
    // SAFETY: asking for the flags of a number changes nothing, whether it is open or not.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } == -1 {
        return None;
    }
    // SAFETY: the parent made this descriptor for this purpose, nothing in this process has been told of it before, and
    // the flag above lets only one caller through.
    let inherited = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(inherited)
}

/// Keeps every descriptor from `first` on from programs that this process becomes or starts.
pub(crate) fn close_on_exec_from(first: RawFd) -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: with this flag nothing is closed; a flag of each open descriptor is set.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) };
    check(answer).map(drop)
}
