//! The folder of all data, and whose it is at the moment.
//!
//! The process that a person has started holds a lock on a file in it as long as it runs. The kernel tells others which
//! process that is, and lets go of the lock however the process ends, so nothing here can be out of date.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};

use crate::cli::DataArgs;
use crate::hint::{Hinted, NOTHING_RUNS};
use crate::shell;

const LOCK: &str = "lock";
/// Says where the API server is, once everything that was asked for has been applied.
const SERVING: &str = "serving";
/// Where the API server keeps its objects.
pub(crate) const STORE: &str = "store";
/// Is there from the beginning of the first start until everything of it has been applied.
const FIRST_START: &str = "first-start";
/// Says which image map was given last.
const IMAGE_MAP: &str = "image-map";

/// The folder of all data.
#[derive(Debug, Clone)]
pub(crate) struct DataFolder {
    path: PathBuf,
    user: User,
    /// Commands find it without being told.
    is_usual: bool,
}

/// The command that uses a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum User {
    Up,
    Node,
}

/// The right to use the folder. It ends with this process, or when it is dropped.
#[derive(Debug)]
pub(crate) struct Occupation {
    _lock: File,
}

impl TryFrom<DataArgs> for DataFolder {
    type Error = anyhow::Error;

    fn try_from(args: DataArgs) -> anyhow::Result<Self> {
        let usual = usual_place();
        let is_usual = args.data_dir.is_none() || args.data_dir.as_ref() == usual.as_ref().ok();
        Ok(Self { is_usual, ..Self::at(&args.data_dir.map_or(usual, Ok)?, User::Up)? })
    }
}

/// The folder for data that belongs to the user.
fn usual_place() -> anyhow::Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || of("HOME").map(|home| home.join(".local/share"));
    let base = of("XDG_DATA_HOME").or_else(home);
    base.map(|base| base.join("skep")).ok_or_else(|| {
        let hinted = Hinted::new("there is no home folder to keep data in");
        hinted.hint("name a folder with --data-dir").into()
    })
}

impl DataFolder {
    /// The folder of a node for a cluster elsewhere: the one that was named, or one of its own beside those of others.
    pub(crate) fn of_node(named: Option<PathBuf>, node: &str) -> anyhow::Result<Self> {
        let usual = || usual_place().map(|place| place.join("nodes").join(node));
        Self::at(&named.map_or_else(usual, Ok)?, User::Node)
    }

    fn at(path: &Path, user: User) -> anyhow::Result<Self> {
        // Others, who are somewhere else, get to know it.
        let path = std::path::absolute(path).with_context(|| format!("cannot use the folder {}", path.display()))?;
        Ok(Self { path, user, is_usual: false })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A command on this folder, as a person types it.
    pub(crate) fn command(&self, command: &str) -> String {
        if self.is_usual {
            format!("skep {command}")
        } else {
            format!("skep {command} --data-dir {}", shell::word(&self.path))
        }
    }

    /// How the administrator reaches the API server.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// What a process in the background has to say.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// Where a process in the background says what it has to say until the folder is its own.
    pub(crate) fn early_log(&self, process: u32) -> PathBuf {
        self.path.join(format!("log.{process}"))
    }

    /// Makes a log the one of the folder. Only for the process that uses the folder: the log of somebody who is there
    /// already must not be taken away.
    pub(crate) fn adopt_log(&self, early: &Path) -> anyhow::Result<()> {
        let log = self.log();
        let put = |from: &Path, to: &Path| fs::rename(from, to);
        match put(&log, &log.with_extension("previous")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => put(early, &log),
        }
        .with_context(|| format!("cannot write the log {}", log.display()))
    }

    /// Whether nothing was ever applied here, as no start has come to its end. To be asked before there is a store.
    pub(crate) fn is_new(&self) -> anyhow::Result<bool> {
        let mark = self.path.join(FIRST_START);
        if !self.path.join(STORE).exists() {
            fs::write(&mark, "").with_context(|| format!("cannot write {}", mark.display()))?;
        }
        Ok(mark.exists())
    }

    /// Remembers that everything of a start has been applied.
    pub(crate) fn tell_begun(&self) -> anyhow::Result<()> {
        let mark = self.path.join(FIRST_START);
        match fs::remove_file(&mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", mark.display()))
            }
            _ => Ok(()),
        }
    }

    /// Remembers which image map was given.
    pub(crate) fn remember_image_map(&self, map: &Path) -> anyhow::Result<()> {
        let path = self.path.join(IMAGE_MAP);
        let map = std::path::absolute(map)?;
        fs::write(&path, map.as_os_str().as_bytes()).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The image map that was given last.
    pub(crate) fn image_map(&self) -> Option<PathBuf> {
        fs::read(self.path.join(IMAGE_MAP)).ok().map(|path| OsString::from_vec(path).into())
    }

    /// What the node keeps on disk.
    pub(crate) fn node(&self) -> PathBuf {
        self.path.join("node")
    }

    /// What the node keeps in memory.
    pub(crate) fn memory(&self) -> PathBuf {
        self.path.join("memory")
    }

    /// Packages that have been pulled.
    pub(crate) fn packages(&self) -> PathBuf {
        self.path.join("packages")
    }

    /// Volumes that outlive pods.
    pub(crate) fn volumes(&self) -> PathBuf {
        self.path.join("volumes")
    }

    /// Makes the folder. Its data is nobody else's business.
    pub(crate) fn make(&self) -> anyhow::Result<()> {
        skep_node::folder::make_private(&self.path).map_err(|error| {
            Hinted::new(format!("cannot make the data folder {}: {error}", self.path.display()))
                .hint("name a folder that you may write to with --data-dir")
                .into()
        })
    }

    /// Takes the folder for this process.
    pub(crate) fn occupy(&self) -> anyhow::Result<Occupation> {
        self.make()?;
        let path = self.path.join(LOCK);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = opened.with_context(|| format!("cannot open {}", path.display()))?;
        match fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(self.occupied().into()),
            Err(error) => return Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
        match fs::remove_file(self.path.join(SERVING)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot write to {}", self.path.display()))
            }
            _ => Ok(Occupation { _lock: lock }),
        }
    }

    /// The process that uses the folder, if any does. One that is not visible from here is process 0.
    ///
    /// Not for the process that uses it: to close the file lets go of all locks that a process has on it.
    pub(crate) fn occupant(&self) -> io::Result<Option<i32>> {
        let lock = match File::open(self.path.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let held = fcntl_getlk(&lock, &Flock::from(FlockType::WriteLock))?;
        Ok(held.map(|held| held.pid.map_or(0, |process: Pid| process.as_raw_nonzero().get())))
    }

    /// Remembers that everything is served at a URL now.
    pub(crate) fn tell_serving(&self, url: &str) -> anyhow::Result<()> {
        let path = self.path.join(SERVING);
        fs::write(&path, format!("{url}\n")).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The URL at which everything is served, once it is.
    pub(crate) fn serving(&self) -> Option<String> {
        let url = fs::read_to_string(self.path.join(SERVING)).ok()?;
        url.ends_with('\n').then(|| url.trim().to_owned())
    }

    /// Why the folder cannot be used by another process.
    pub(crate) fn occupied(&self) -> Hinted {
        let process = self.occupant().ok().flatten().filter(|process| *process > 0);
        let process = process.map_or_else(String::new, |process| format!(" (process {process})"));
        let runs = |command: &str| Hinted::new(format!("{command} runs on {} already{process}", self.path.display()));
        match self.user {
            User::Up => runs("skep up")
                .hint(format!(
                    "{} shows what it serves, {} gives it more to serve, {} stops it",
                    self.command("status"),
                    self.command("apply -f FILE"),
                    self.command("down")
                ))
                .hint("or run another one beside it: skep up --data-dir FOLDER --listen 127.0.0.1:0"),
            User::Node => runs("skep node")
                .hint("end that one, or choose another folder with --data-dir and another name with --name"),
        }
    }

    /// Why nobody can be talked to: the folder is somebody else's.
    pub(crate) fn closed(&self, error: &io::Error) -> Hinted {
        Hinted::new(format!("cannot look into {}: {error}", self.path.display())).hint(
            "it belongs to another user: name a folder of your own with --data-dir, or run the command as that user",
        )
    }

    /// Why there is nobody to talk to.
    pub(crate) fn unoccupied(&self) -> Hinted {
        Hinted::new(format!("nothing runs on {}", self.path.display()))
            .hint(format!("start it with {}, or name the folder of what runs with --data-dir", self.command("up")))
            .exit_code(NOTHING_RUNS)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder() -> (tempfile::TempDir, DataFolder) {
        let place = tempfile::TempDir::new().unwrap();
        let folder = DataFolder { path: place.path().join("data"), user: User::Up, is_usual: true };
        (place, folder)
    }

    #[test]
    fn a_new_occupant_does_not_believe_what_the_last_one_said() {
        let (_place, folder) = folder();
        assert_eq!(folder.occupant().unwrap(), None);
        let first = folder.occupy().unwrap();
        folder.tell_serving("https://127.0.0.1:1").unwrap();
        assert_eq!(folder.serving().as_deref(), Some("https://127.0.0.1:1"));
        drop(first);
        let _second = folder.occupy().unwrap();
        assert_eq!(folder.serving(), None);
    }

    #[test]
    fn a_folder_is_new_until_a_start_has_come_to_its_end() {
        let (_place, folder) = folder();
        folder.make().unwrap();
        assert!(folder.is_new().unwrap());
        fs::create_dir(folder.path().join(STORE)).unwrap();
        assert!(folder.is_new().unwrap(), "the first start was cut short");
        folder.tell_begun().unwrap();
        assert!(!folder.is_new().unwrap());
        folder.tell_begun().unwrap();
        assert!(!folder.is_new().unwrap());
    }

    #[test]
    fn commands_name_a_folder_that_they_would_not_find() {
        let (place, folder) = folder();
        assert_eq!(folder.command("status"), "skep status");
        let path = place.path().join("my data");
        let named = DataFolder::try_from(DataArgs { data_dir: Some(path.clone()) }).unwrap();
        assert_eq!(named.command("logs NAME"), format!("skep logs NAME --data-dir '{}'", path.display()));
        let told = crate::hint::report(&named.unoccupied().into());
        assert!(told.contains(&format!("hint: start it with skep up --data-dir '{}', or", path.display())), "{told}");
        if let Ok(usual) = usual_place() {
            let usual = DataFolder::try_from(DataArgs { data_dir: Some(usual) }).unwrap();
            assert_eq!(usual.command("down"), "skep down");
        }
    }

    #[test]
    fn the_folder_is_private() {
        let (_place, folder) = folder();
        folder.make().unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o711);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(
            DataFolder { path: file, user: User::Up, is_usual: true }
                .make()
                .unwrap_err()
                .to_string()
                .contains("cannot make the data folder")
        );
    }
}
