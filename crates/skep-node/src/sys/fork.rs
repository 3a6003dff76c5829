//! A copy of a process that has no other threads.

use std::io;

use rustix::process::Pid;

use super::check;

/// Which of the two processes this is.
#[derive(Debug)]
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

/// Forks, after making sure that no other thread exists that could hold a lock the child needs.
pub(crate) fn fork_alone() -> io::Result<Fork> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with threads cannot be forked"));
    }
    // SAFETY: this is the only thread, so the child has all that it needs to go on like its parent.
    let pid = check(unsafe { libc::fork() })?;
    Ok(Pid::from_raw(pid).map_or(Fork::Child, Fork::Parent))
}
