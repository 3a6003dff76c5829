//! The file system of a container: that of the machine, read-only, with places of its own and what is mounted in.
//!
//! Built without a path of the machine that could be swapped underneath: every step works on descriptors, and targets
//! are resolved inside the new root, so that no symbolic link leads out of it.

mod masks;
mod own_places;
mod point;
mod tree;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};
use serde::{Deserialize, Serialize};

use super::{Mount, StartError};
use crate::sys;
use point::{Cover, Kind, Points};
use tree::Entry;

/// What the file system of a container is made of.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RootPlan {
    pub mounts: Vec<Mount>,
    /// A folder that is made if it is missing. The machine does not get it.
    pub working_dir: Option<PathBuf>,
    pub hidden: Vec<PathBuf>,
    pub read_only: bool,
}

/// Mounts a `/proc` that shows the processes of this process's namespace.
pub(super) fn renew_proc() -> io::Result<()> {
    keep_to_ourselves()?;
    let place = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    tree::attach(&tree::proc()?, &place)
}

/// Builds the file system and makes it that of this process and all that it starts.
pub(super) fn enter(plan: &RootPlan) -> Result<(), StartError> {
    keep_to_ourselves().map_err(StartError::kernel("separate the mounts"))?;
    let volumes = plan.mounts.iter().map(Volume::take).collect::<Result<Vec<_>, _>>()?;
    let machine = tree::top_level().map_err(StartError::kernel("look at the file system of the machine"))?;
    let root = tree::tmpfs(Mode::from_raw_mode(0o755)).map_err(StartError::kernel("mount a root file system"))?;
    let proc = tree::proc().map_err(StartError::kernel("mount a new /proc"))?;
    let devices = own_places::take_devices().map_err(StartError::kernel("take the devices"))?;
    let system = tree::take(CWD, "/sys").ok();
    attach_root(&root, &machine).map_err(StartError::kernel("attach the root file system"))?;
    for entry in machine {
        entry.place(&root).map_err(StartError::kernel("bring in the file system of the machine"))?;
    }

    let mut points = Points::new(root);
    // Overlays hide what is mounted below them, so the points that need one are made while nothing is.
    for (index, volume) in volumes.iter().enumerate() {
        if !is_below_others(&volume.mount.target, &plan.mounts[..index], plan) {
            points.ensure(&volume.mount.target, volume.kind, Cover::Overlay).map_err(|error| volume.refused(&error))?;
        }
    }
    // One that is no path below / is whatever the program makes of it.
    let working_dir = plan.working_dir.as_deref().filter(|path| check_target(path).is_ok());
    let (later, now) = working_dir.into_iter().partition(|path| is_below_others(path, &plan.mounts, plan));
    make_folders(&mut points, now, Cover::Overlay)?;
    own_places::make(&mut points, &proc, &devices, system.as_ref())
        .map_err(StartError::kernel("make /dev, /proc and the temporary folders"))?;
    masks::put(&mut points).map_err(StartError::kernel("hide parts of /proc and /sys"))?;
    for path in &plan.hidden {
        points.hide(path).map_err(StartError::kernel("hide a place of the machine"))?;
    }
    for (index, volume) in volumes.iter().enumerate() {
        let in_volume = plan.mounts[..index].iter().any(|earlier| volume.mount.target.starts_with(&earlier.target));
        let cover = if in_volume { Cover::Never } else { Cover::Children };
        volume.place(&mut points, cover).map_err(|error| volume.refused(&error))?;
    }
    make_folders(&mut points, later, Cover::Never)?;
    let root = points.finish(plan.read_only).map_err(StartError::kernel("make the root file system read-only"))?;
    change_to(&root).map_err(StartError::kernel("change to the root file system"))
}

/// Makes working folders that are missing.
fn make_folders(points: &mut Points, folders: Vec<&Path>, cover: Cover) -> Result<(), StartError> {
    for path in folders {
        let made = points.ensure(path, Kind::Folder, cover);
        made.map_err(|error| StartError::WorkingDir { path: path.to_owned(), cause: error.to_string() })?;
    }
    Ok(())
}

fn keep_to_ourselves() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// A mount with its source, which is taken before anything is covered.
struct Volume<'a> {
    mount: &'a Mount,
    tree: OwnedFd,
    kind: Kind,
}

impl<'a> Volume<'a> {
    fn take(mount: &'a Mount) -> Result<Self, StartError> {
        let taken = check_target(&mount.target).and_then(|()| {
            let tree = tree::take(CWD, &mount.source)?;
            if mount.read_only {
                sys::make_read_only(tree.as_fd(), true)?;
            }
            Ok(Self { mount, kind: Kind::of(&tree)?, tree })
        });
        taken.map_err(|error| refused(mount, &error))
    }

    fn place(&self, points: &mut Points, cover: Cover) -> io::Result<()> {
        let point = points.ensure(&self.mount.target, self.kind, cover)?;
        tree::attach(&self.tree, &point)
    }

    fn refused(&self, cause: &io::Error) -> StartError {
        refused(self.mount, cause)
    }
}

fn refused(mount: &Mount, cause: &io::Error) -> StartError {
    let Mount { source, target, read_only: _ } = mount;
    StartError::Mount { source_path: source.clone(), target: target.clone(), cause: cause.to_string() }
}

fn check_target(target: &Path) -> io::Result<()> {
    let plain = |component| matches!(component, Component::Normal(_));
    let mut components = target.components();
    if components.next() != Some(Component::RootDir) || !components.clone().all(plain) || components.count() == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the target is not an absolute path below /"));
    }
    Ok(())
}

/// Whether something else will be mounted above the target, so that its point has to be made after that.
fn is_below_others(target: &Path, earlier: &[Mount], plan: &RootPlan) -> bool {
    let earlier = earlier.iter().map(|mount| mount.target.as_path());
    let hidden = plan.hidden.iter().map(PathBuf::as_path);
    let own = own_places::PATHS.into_iter().map(Path::new);
    earlier.chain(hidden).chain(own).any(|above| target.starts_with(above))
}

/// Attaches the new root somewhere, as only attached mounts can have others on them. Which folder it covers does not
/// matter: what was in it has been taken already.
fn attach_root(root: &OwnedFd, machine: &[Entry]) -> io::Result<()> {
    let name = machine
        .iter()
        .find_map(|entry| match entry {
            Entry::Tree(name, Kind::Folder, _) => Some(name),
            _ => None,
        })
        .ok_or(io::ErrorKind::NotFound)?;
    let place = rustix::fs::open(Path::new("/").join(name), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    tree::attach(root, &place)
}

fn change_to(root: &OwnedFd) -> io::Result<()> {
    fchdir(root)?;
    // With both paths the same, the old root lies on top of the new one, and is then taken off.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}
