//! Trees of mounts that are taken, made and attached by descriptor.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};
use rustix::path::Arg;

use super::own_places;
use super::point::Kind;
use crate::sys;

/// A copy of what is mounted at and below a path, attached to nothing.
pub(super) fn take(folder: impl AsFd, path: impl Arg) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(folder, path, flags)?)
}

/// A copy of what is mounted at and below an open file or folder.
pub(super) fn take_at(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(place, "", flags)?)
}

/// Attaches a tree on top of a file or folder.
pub(super) fn attach(tree: &OwnedFd, point: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", point, "", flags)?)
}

/// A file system of a kind, with options; those without a value are flags.
pub(super) fn mount(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        if value.is_empty() {
            fsconfig_set_flag(&context, *name)?;
        } else {
            fsconfig_set_string(&context, *name, *value)?;
        }
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// An empty file system in memory.
pub(super) fn tmpfs(mode: Mode) -> io::Result<OwnedFd> {
    let mode = format!("{:o}", mode.as_raw_mode());
    mount("tmpfs", &[("mode", &mode)], MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// A file system that shows the processes of this process's namespace.
pub(super) fn proc() -> io::Result<OwnedFd> {
    let attributes =
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    mount("proc", &[], attributes)
}

/// Something that is put into another folder as it is.
#[derive(Debug)]
pub(super) enum Entry {
    Link(OsString, PathBuf),
    Tree(OsString, Kind, OwnedFd),
}

impl Entry {
    /// Takes an entry of a folder.
    pub fn take(folder: impl AsFd, entry: &fs::DirEntry) -> io::Result<Self> {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if kind.is_symlink() {
            return Ok(Self::Link(name, fs::read_link(entry.path())?));
        }
        let tree = take(folder, &name)?;
        Ok(Self::Tree(name, Kind::of(&tree)?, tree))
    }

    /// Puts it into a folder.
    pub fn place(&self, folder: impl AsFd) -> io::Result<()> {
        match self {
            Self::Link(name, target) => Ok(symlinkat(target.as_path(), folder, name)?),
            Self::Tree(name, kind, tree) => attach(tree, &kind.make(folder, name)?),
        }
    }
}

/// What is in the root folder of the machine, read-only, save for the places that containers have of their own.
pub(super) fn top_level() -> io::Result<Vec<Entry>> {
    let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in fs::read_dir("/")? {
        let entry = entry?;
        if own_places::PATHS.iter().any(|own| entry.path() == Path::new(own)) {
            continue;
        }
        let taken = Entry::take(&root, &entry)?;
        if let Entry::Tree(_, _, tree) = &taken {
            sys::make_read_only(tree.as_fd(), true)?;
        }
        entries.push(taken);
    }
    Ok(entries)
}

impl Kind {
    /// Makes an empty one.
    pub fn make(self, folder: impl AsFd, name: impl Arg + Copy) -> io::Result<OwnedFd> {
        match self {
            Self::Folder => mkdirat(&folder, name, Mode::from_raw_mode(0o755))?,
            Self::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                openat(&folder, name, flags, Mode::from_raw_mode(0o644)).map(drop)?;
            }
        }
        Ok(openat(&folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
    }
}
