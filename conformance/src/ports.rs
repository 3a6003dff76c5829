//! Ports for programs that have to be told one.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range from which the system takes the ports of outgoing connections: one of those could take a port between
/// our look and the program's start.
const PORTS: std::ops::Range<u16> = 14_000..30_000;

/// Ports that are free now. Each process begins at another place and never tries one twice in a row.
pub(crate) fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    let mut ports = [0; N];
    for port in &mut ports {
        *port = (0..count)
            .find_map(|_| {
                let step = TRIED.fetch_add(1, Ordering::Relaxed);
                let offset = std::process::id().wrapping_mul(61).wrapping_add(step) % count;
                let candidate = PORTS.start + u16::try_from(offset).ok()?;
                TcpListener::bind((Ipv4Addr::LOCALHOST, candidate)).ok().map(|_| candidate)
            })
            .ok_or(io::ErrorKind::AddrNotAvailable)?;
    }
    Ok(ports)
}
