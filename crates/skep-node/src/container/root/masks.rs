//! What the kernel tells and takes by way of files is about the whole machine, not about a container: such files of
//! `/proc` and `/sys` are read-only or empty, whoever the container runs as.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::point::Points;
use super::tree;
use crate::sys;

/// Writing here would change the machine.
const READ_ONLY: [&str; 6] = ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Reading here would tell about others on the machine.
const HIDDEN: [&str; 10] = [
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
];

/// Puts them over `/proc` and `/sys`, which must be in place. Not every kernel has all of them.
pub(super) fn put(points: &mut Points) -> io::Result<()> {
    for path in READ_ONLY.map(Path::new) {
        let Some(place) = points.look(path)? else { continue };
        let same = tree::take_at(&place)?;
        sys::make_read_only(same.as_fd(), true)?;
        tree::attach(&same, &place)?;
    }
    HIDDEN.iter().try_for_each(|path| points.hide(Path::new(path)))
}
