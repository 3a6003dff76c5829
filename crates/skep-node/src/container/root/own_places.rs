//! The places that every container has of its own: devices, processes and temporary folders.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, symlinkat};
use rustix::mount::MountAttrFlags;

use super::point::{Cover, Kind, Points};
use super::tree;
use crate::sys;

/// Where they are.
pub(super) const PATHS: [&str; 6] = ["/dev", "/proc", "/sys", "/tmp", "/run", "/var/tmp"];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

const SHARED: Mode = Mode::from_raw_mode(0o1777);
const PLAIN: Mode = Mode::from_raw_mode(0o755);

/// The devices of the machine that containers may use. They belong to everybody on it, so that their owners and modes
/// are not a container's to change, be it root or not; a read-only mount keeps those, and lets the devices be written to.
pub(super) fn take_devices() -> io::Result<Vec<(&'static str, OwnedFd)>> {
    let take = |name: &&'static str| {
        let device = tree::take(CWD, Path::new("/dev").join(name).as_path())?;
        sys::make_read_only(device.as_fd(), false)?;
        Ok((*name, device))
    };
    DEVICES.iter().map(take).collect()
}

/// Makes all of them.
pub(super) fn make(
    points: &mut Points,
    proc: &OwnedFd,
    devices: &[(&'static str, OwnedFd)],
    system: Option<&OwnedFd>,
) -> io::Result<()> {
    tree::attach(proc, &folder(points, "/proc")?)?;
    if let Some(system) = system {
        sys::make_read_only(system.as_fd(), true)?;
        tree::attach(system, &folder(points, "/sys")?)?;
    }
    make_dev(&folder(points, "/dev")?, devices)?;
    points.put_tmpfs(Path::new("/tmp"), SHARED)?;
    points.put_tmpfs(Path::new("/run"), PLAIN)?;
    // Not every machine has this one, and none needs it.
    if points.has_folder(Path::new("/var/tmp")) {
        points.put_tmpfs(Path::new("/var/tmp"), SHARED)?;
    }
    Ok(())
}

fn folder(points: &mut Points, path: &str) -> io::Result<OwnedFd> {
    points.ensure(Path::new(path), Kind::Folder, Cover::Never)
}

fn make_dev(point: &OwnedFd, devices: &[(&'static str, OwnedFd)]) -> io::Result<()> {
    let dev = tree::tmpfs(PLAIN)?;
    tree::attach(&dev, point)?;
    for (name, device) in devices {
        tree::attach(device, &Kind::File.make(&dev, *name)?)?;
    }
    for (name, target) in LINKS {
        symlinkat(target, &dev, name)?;
    }
    tree::attach(&tree::tmpfs(SHARED)?, &Kind::Folder.make(&dev, "shm")?)?;
    let options = [("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620")];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let terminals = tree::mount("devpts", &options, attributes)?;
    tree::attach(&terminals, &Kind::Folder.make(&dev, "pts")?)
}
