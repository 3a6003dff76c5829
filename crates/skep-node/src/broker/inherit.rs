//! How the process inside finds the channel to the one outside.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use rustix::fs::fstat;

use crate::channel::Channel;

/// Names the channel by the number of its socket, which no other descriptor of any process has.
pub(crate) const CHANNEL_VARIABLE: &str = "SKEP_BROKER_CHANNEL";

/// What to say in [`CHANNEL_VARIABLE`].
pub(crate) fn announcement(channel: &Channel) -> io::Result<String> {
    Ok(format!("socket:[{}]", fstat(channel)?.st_ino))
}

/// The number of the descriptor that was announced, if this process has it.
pub(crate) fn inherited() -> Option<RawFd> {
    let announced = std::env::var_os(CHANNEL_VARIABLE)?;
    fs::read_dir("/proc/self/fd").ok()?.find_map(|entry| {
        let entry = entry.ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        (target.as_os_str() == announced).then(|| entry.file_name().to_str()?.parse().ok())?
    })
}
