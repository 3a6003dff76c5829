//! Descriptors that an asynchronous program waits for.

use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;

use tokio::io::unix::AsyncFd;

/// A descriptor and when it is ready. It cannot be exchanged for another one.
#[derive(Debug)]
pub(crate) struct Pollable(AsyncFd<OwnedFd>);

impl Pollable {
    pub fn new(descriptor: OwnedFd) -> io::Result<Self> {
        // SAFETY: an owned descriptor stays open, and the same, as long as it is owned; nothing gives out a mutable
        // reference to it.
        Ok(Self(unsafe { AsyncFd::register(descriptor) }?))
    }
}

impl Deref for Pollable {
    type Target = AsyncFd<OwnedFd>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
