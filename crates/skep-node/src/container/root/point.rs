//! Mount points: found inside the new root, or made where they are missing.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Gid, Mode, OFlags, ResolveFlags, Uid, fchmod, fchown, fstat, openat, openat2, readlinkat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};

use super::tree::{self, Entry};
use crate::sys;

/// How often a missing target may turn out to be a link to another one.
const LINKS: usize = 40;

/// How often a look-up is tried again that something else on the machine came in between of.
const LOOKUPS: usize = 10_000;

/// The name of the folder in which overlays keep what is added. It is gone when the root is finished.
const SCRATCH: &str = ".skep";

/// What something is mounted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

impl Kind {
    pub fn of(descriptor: &OwnedFd) -> io::Result<Self> {
        let folder = FileType::from_raw_mode(fstat(descriptor)?.st_mode) == FileType::Directory;
        Ok(if folder { Self::Folder } else { Self::File })
    }
}

/// What may be done to a read-only folder in which a mount point is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    /// Nothing.
    Never,
    /// An overlay, or where the kernel refuses one, the same as [`Cover::Children`].
    Overlay,
    /// A new folder with all that is in the old one, mounts included.
    Children,
}

/// The new root while mount points are made in it.
#[derive(Debug)]
pub(super) struct Points {
    root: OwnedFd,
    scratch: Option<OwnedFd>,
    /// Folders that stand for read-only ones, and are made read-only when everything is in them.
    covers: Vec<OwnedFd>,
    /// Folders that containers may write to, unless their root is read-only.
    writable: Vec<OwnedFd>,
}

impl Points {
    pub fn new(root: OwnedFd) -> Self {
        Self { root, scratch: None, covers: Vec::new(), writable: Vec::new() }
    }

    /// The mount point at a path, which is made if it is missing.
    pub fn ensure(&mut self, target: &Path, kind: Kind, cover: Cover) -> io::Result<OwnedFd> {
        let mut target = target.to_owned();
        for _ in 0..LINKS {
            match self.find(&target) {
                Ok(found) if Kind::of(&found)? == kind => return Ok(found),
                Ok(_) if kind == Kind::Folder => return Err(io::ErrorKind::NotADirectory.into()),
                Ok(_) => return Err(io::ErrorKind::IsADirectory.into()),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            match self.make_missing(&target, kind, cover)? {
                Made::Point(point) => return Ok(point),
                Made::LeadsTo(other) => target = other,
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Whether there is a folder at a path.
    pub fn has_folder(&self, path: &Path) -> bool {
        self.find(path).is_ok_and(|found| Kind::of(&found).is_ok_and(|kind| kind == Kind::Folder))
    }

    /// Puts an empty folder on a path.
    pub fn put_tmpfs(&mut self, path: &Path, mode: Mode) -> io::Result<()> {
        let point = self.ensure(path, Kind::Folder, Cover::Never)?;
        let folder = tree::tmpfs(mode)?;
        tree::attach(&folder, &point)?;
        self.writable.push(folder);
        Ok(())
    }

    /// What is at a path, if anything is.
    pub fn look(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        match self.find(path) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces a file or folder, if there is one, by an empty one.
    pub fn hide(&mut self, path: &Path) -> io::Result<()> {
        if path.components().all(|component| component == Component::RootDir) {
            return Ok(());
        }
        let Some(place) = self.look(path)? else { return Ok(()) };
        match Kind::of(&place)? {
            Kind::Folder => self.put_tmpfs(path, Mode::from_raw_mode(0o755)),
            Kind::File => {
                let folder = tree::tmpfs(Mode::from_raw_mode(0o755))?;
                let nothing = Kind::File.make(&folder, "nothing")?;
                let nothing = tree::take_at(&nothing)?;
                sys::make_read_only(nothing.as_fd(), false)?;
                tree::attach(&nothing, &place)
            }
        }
    }

    /// The finished root.
    pub fn finish(self, read_only: bool) -> io::Result<OwnedFd> {
        if let Some(scratch) = &self.scratch {
            unmount(magic_path(scratch), UnmountFlags::DETACH)?;
            rustix::fs::unlinkat(&self.root, SCRATCH, rustix::fs::AtFlags::REMOVEDIR)?;
        }
        let writable = if read_only { &self.writable[..] } else { &[] };
        let root = read_only.then_some(&self.root);
        for mount in self.covers.iter().chain(writable).chain(root) {
            sys::make_read_only(mount.as_fd(), false)?;
        }
        Ok(self.root)
    }

    /// What is at a path inside the new root.
    fn find(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let open = || openat2(&self.root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT);
        // While anything on the machine is mounted or renamed, the kernel cannot be sure that a `..` stays in the root.
        let mut found = open();
        for _ in 0..LOOKUPS {
            if !matches!(found, Err(Errno::AGAIN)) {
                break;
            }
            std::thread::yield_now();
            found = open();
        }
        found
    }

    fn make_missing(&mut self, target: &Path, kind: Kind, cover: Cover) -> io::Result<Made> {
        let (above, mut folder) = self.deepest(target)?;
        let missing: Vec<_> = target.strip_prefix(&above).map_err(io::Error::other)?.components().collect();
        for (index, component) in missing.iter().enumerate() {
            let Component::Normal(name) = component else {
                return Err(Errno::NOENT.into());
            };
            if let Ok(link) = readlinkat(&folder, *name, Vec::new()) {
                // A link that leads nowhere: what it names is missing, not the link.
                let rest = missing[index + 1..].iter().collect::<PathBuf>();
                let leads_to = above.join(OsStr::from_bytes(link.as_bytes()));
                return Ok(Made::LeadsTo(if rest.as_os_str().is_empty() { leads_to } else { leads_to.join(rest) }));
            }
            let kind = if index + 1 == missing.len() { kind } else { Kind::Folder };
            folder = match kind.make(&folder, *name) {
                Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem && cover != Cover::Never => {
                    let covered = self.cover(&folder, cover)?;
                    kind.make(&covered, *name)?
                }
                made => made?,
            };
        }
        Ok(Made::Point(folder))
    }

    /// The deepest folder on the way to a target that exists, and its path.
    fn deepest(&self, target: &Path) -> io::Result<(PathBuf, OwnedFd)> {
        for above in target.ancestors().skip(1) {
            match self.find(above) {
                Ok(folder) => return Ok((above.to_owned(), folder)),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::NOENT.into())
    }

    /// Puts a folder on another one that looks the same and can be added to.
    fn cover(&mut self, folder: &OwnedFd, cover: Cover) -> io::Result<OwnedFd> {
        let covered = match cover {
            Cover::Overlay => match self.overlay(folder) {
                Ok(overlay) => overlay,
                // Such as a folder with mounts of the machine below it, or a file system that cannot be a layer.
                Err(_) => copy_children(folder)?,
            },
            Cover::Children | Cover::Never => copy_children(folder)?,
        };
        self.covers.push(covered.try_clone()?);
        Ok(covered)
    }

    fn overlay(&mut self, folder: &OwnedFd) -> io::Result<OwnedFd> {
        let number = self.covers.len();
        let scratch = match self.scratch.take() {
            Some(scratch) => scratch,
            None => self.make_scratch()?,
        };
        let scratch = self.scratch.insert(scratch);
        let upper = Kind::Folder.make(&*scratch, format!("upper{number}").as_str())?;
        let work = Kind::Folder.make(&*scratch, format!("work{number}").as_str())?;
        look_like(&upper, folder)?;
        let (lower, upper, work) = (magic_path(folder), magic_path(&upper), magic_path(&work));
        let options = [("lowerdir", &*lower), ("upperdir", &*upper), ("workdir", &*work), ("userxattr", "")];
        let overlay = tree::mount("overlay", &options, MountAttrFlags::MOUNT_ATTR_NOSUID)?;
        tree::attach(&overlay, folder)?;
        Ok(overlay)
    }

    fn make_scratch(&self) -> io::Result<OwnedFd> {
        let scratch = tree::tmpfs(Mode::from_raw_mode(0o700))?;
        tree::attach(&scratch, &Kind::Folder.make(&self.root, SCRATCH)?)?;
        Ok(scratch)
    }
}

/// What became of a missing mount point.
enum Made {
    Point(OwnedFd),
    LeadsTo(PathBuf),
}

/// Covers a folder by a new one, and brings in everything that is in it.
fn copy_children(folder: &OwnedFd) -> io::Result<OwnedFd> {
    let copy = tree::tmpfs(Mode::from_raw_mode(0o755))?;
    look_like(&copy, folder)?;
    tree::attach(&copy, folder)?;
    for entry in fs::read_dir(magic_path(folder))? {
        Entry::take(folder, &entry?)?.place(&copy)?;
    }
    Ok(copy)
}

/// Gives a folder the mode and, where that is possible, the owner of another.
fn look_like(folder: &OwnedFd, model: &OwnedFd) -> io::Result<()> {
    let status = fstat(model)?;
    let folder = openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // Owners that are not mapped cannot be given anything.
    let _ = fchown(&folder, Some(Uid::from_raw(status.st_uid)), Some(Gid::from_raw(status.st_gid)));
    Ok(fchmod(&folder, Mode::from_raw_mode(status.st_mode))?)
}

/// A path that means a descriptor of this process.
fn magic_path(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}
