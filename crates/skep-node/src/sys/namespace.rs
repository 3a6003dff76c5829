//! New namespaces for the thread that asks.

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves this process, which must have no other thread, into a new user namespace without any maps.
pub(crate) fn new_user_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER)
}

/// Moves this thread, and no other, into a new network namespace.
pub(crate) fn new_network_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: the call is unsafe for the sake of the table of descriptors, which these flags leave alone.
    Ok(unsafe { unshare_unsafe(what) }?)
}
