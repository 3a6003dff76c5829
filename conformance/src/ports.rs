//! Ports for programs that have to be told one.
//!
//! Test programs run at the same time, and what they start opens its ports a while after they were looked for. So each
//! marks the ports that it was given, with a socket whose name only one process of the network can have. A mark goes with
//! its process.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// As many are given, and marked, at once.
const ROW: u16 = 8;
/// Below the range from which the system takes the ports of outgoing connections: one of those could take a port between
/// our look and the program's start.
const ROWS: std::ops::Range<u16> = 14_000 / ROW..30_000 / ROW;

/// The first of eight ports in a row that are free now, and that no other test gets as long as this process lives.
pub fn free_port() -> io::Result<u16> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    static MARKS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let count = u32::from(ROWS.end - ROWS.start);
    for _ in 0..count {
        // Each process begins at another place.
        let step = TRIED.fetch_add(1, Ordering::Relaxed);
        let row =
            ROWS.start + u16::try_from(std::process::id().wrapping_mul(61).wrapping_add(step) % count).unwrap_or(0);
        let Some(mark) = mark(row)? else { continue };
        if (0..ROW).all(|number| TcpListener::bind((Ipv4Addr::UNSPECIFIED, row * ROW + number)).is_ok()) {
            MARKS.lock().unwrap_or_else(PoisonError::into_inner).push(mark);
            return Ok(row * ROW);
        }
    }
    Err(io::ErrorKind::AddrNotAvailable.into())
}

/// Ports that are free now, from one row.
pub(crate) fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    // The length of a row.
    const { assert!(N <= 8) };
    let first = free_port()?;
    let mut next = first..;
    Ok([(); N].map(|()| next.next().unwrap_or(first)))
}

/// Marks a row; none when somebody else has.
fn mark(row: u16) -> io::Result<Option<UnixListener>> {
    let name = SocketAddr::from_abstract_name(format!("skep-test-ports-{row}"))?;
    match UnixListener::bind_addr(&name) {
        Ok(mark) => Ok(Some(mark)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_test_was_given_no_other_gets() {
        let first = free_port().unwrap();
        assert!(mark(first / ROW).unwrap().is_none(), "it is marked");
        let second = free_port().unwrap();
        assert!(first.abs_diff(second) >= ROW, "{first} {second}");
        let [one, other, last] = free_ports().unwrap();
        assert_eq!((other - one, last - other), (1, 1));
    }

    #[test]
    fn a_mark_goes_with_its_owner() {
        // Beyond those that are given.
        let row = ROWS.end + u16::try_from(std::process::id() % 1_000).unwrap();
        let marked = mark(row).unwrap().unwrap();
        assert!(mark(row).unwrap().is_none());
        drop(marked);
        assert!(mark(row).unwrap().is_some());
    }
}
