//! Marks by which runs of Skep tell each other what they use of a machine.
//!
//! A mark is a socket with a name that only one process of a network namespace can have. It goes with its process, however
//! that ends.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Something that nobody else can mark as long as this exists.
#[derive(Debug)]
pub(crate) struct Mark(pub(crate) UnixListener);

impl Mark {
    /// Sets a mark. The kind of error tells when somebody else has it.
    pub(crate) fn set(name: &str) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(format!("skep-{name}"))?;
        UnixListener::bind_addr(&address).map(Self)
    }
}
