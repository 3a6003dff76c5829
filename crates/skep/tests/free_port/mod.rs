//! Ports for what tests start.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Tests may use some of the numbers that follow, too.
const STEP: u32 = 7;

/// A port that nobody listens on at the moment, and that the kernel gives to nobody who asks for any.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(37);
    let mut ports =
        std::iter::repeat_with(|| first.wrapping_add(NEXT.fetch_add(STEP, Ordering::Relaxed)) % 10_000 + 20_000);
    let is_free = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok();
    ports.by_ref().take(10_000).map(|port| u16::try_from(port).unwrap()).find(is_free).unwrap()
}
