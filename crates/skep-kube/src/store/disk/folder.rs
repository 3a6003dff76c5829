//! The data folder: who may use it, what is in it, and how a new one comes to be.
//!
//! It holds a marker that says the format, and the data file. A new folder is made in steps that can be interrupted
//! anywhere: the data file gets its name last, and what an interrupted attempt left behind is recognised.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::OpenError;

/// The format of the folder and everything in it. A reader refuses what is newer than itself.
pub const FORMAT_VERSION: u64 = 1;

const MARKER: &str = "format";
const MARKER_PREFIX: &str = "skep-kube store ";
const DATA: &str = "store.redb";
/// Names that only exist while a folder is being made.
const UNFINISHED_MARKER: &str = "format.new";
const UNFINISHED_DATA: &str = "store.redb.new";

/// A folder of our own that no other process uses.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The folder itself, locked as long as it is open.
    lock: File,
}

impl Folder {
    /// Opens a data folder. `create` fills the data file of a new one, unless the folder must be there.
    pub(super) fn open(
        path: &Path,
        must_exist: bool,
        create: impl FnOnce(File) -> Result<(), redb::Error>,
    ) -> Result<Self, OpenError> {
        let unreadable = |source| OpenError::Unreadable { path: path.to_owned(), source };
        let missing = || OpenError::Missing { path: path.to_owned() };
        match fs::metadata(path) {
            Ok(found) if !found.is_dir() => return Err(OpenError::NotAFolder { path: path.to_owned() }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && must_exist => return Err(missing()),
            // Others must not read it: it holds secrets.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unreadable)?;
            }
            Err(error) => return Err(unreadable(error)),
        }
        let lock = File::open(path).map_err(unreadable)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => OpenError::Locked { path: path.to_owned() },
            TryLockError::Error(source) => unreadable(source),
        })?;
        let folder = Self { path: path.to_owned(), lock };
        if folder.is_new()? {
            if must_exist {
                return Err(missing());
            }
            folder.make(create)?;
        }
        Ok(folder)
    }

    pub(super) fn data_file(&self) -> PathBuf {
        self.path.join(DATA)
    }

    pub(super) fn open_data_file(&self) -> Result<File, OpenError> {
        let path = self.data_file();
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        opened.map_err(|source| OpenError::Unreadable { path, source })
    }

    /// Whether the folder has yet to be made. Refuses one that is not ours.
    fn is_new(&self) -> Result<bool, OpenError> {
        let names = self.names().map_err(|source| self.unreadable("", source))?;
        let holds = |name: &str| names.iter().any(|found| found == name);
        if !holds(MARKER) {
            return match names.iter().find(|name| ![UNFINISHED_MARKER, UNFINISHED_DATA].contains(&name.as_str())) {
                None => Ok(true),
                Some(name) => Err(OpenError::Foreign { path: self.path.clone(), found: format!("{name:?}") }),
            };
        }
        self.check_marker()?;
        if holds(DATA) {
            return Ok(false);
        }
        if holds(UNFINISHED_DATA) {
            return Ok(true);
        }
        Err(OpenError::Damaged { path: self.path.clone(), cause: format!("{DATA} is missing") })
    }

    fn check_marker(&self) -> Result<(), OpenError> {
        let mut bytes = Vec::new();
        File::open(self.path.join(MARKER))
            .and_then(|file| file.take(64).read_to_end(&mut bytes))
            .map_err(|source| self.unreadable(MARKER, source))?;
        let text = String::from_utf8_lossy(&bytes);
        let Some(version) = text.strip_prefix(MARKER_PREFIX) else {
            let found = format!("a file {MARKER:?} that is not ours");
            return Err(OpenError::Foreign { path: self.path.clone(), found });
        };
        match version.trim_end().parse::<u64>() {
            Ok(FORMAT_VERSION) => Ok(()),
            Ok(found) if found > FORMAT_VERSION => {
                Err(OpenError::Newer { path: self.path.clone(), found, supported: FORMAT_VERSION })
            }
            _ => Err(OpenError::Damaged { path: self.path.join(MARKER), cause: "it names no known format".to_owned() }),
        }
    }

    fn make(&self, create: impl FnOnce(File) -> Result<(), redb::Error>) -> Result<(), OpenError> {
        let data = self.create_file(UNFINISHED_DATA).map_err(|source| self.unreadable(UNFINISHED_DATA, source))?;
        create(data).map_err(|error| self.unreadable(UNFINISHED_DATA, io::Error::other(error)))?;
        self.finish().map_err(|source| self.unreadable("", source))
    }

    fn finish(&self) -> io::Result<()> {
        let mut marker = self.create_file(UNFINISHED_MARKER)?;
        writeln!(marker, "{MARKER_PREFIX}{FORMAT_VERSION}")?;
        marker.sync_all()?;
        fs::rename(self.path.join(UNFINISHED_MARKER), self.path.join(MARKER))?;
        fs::rename(self.path.join(UNFINISHED_DATA), self.data_file())?;
        // The names themselves must be on the disk before a write is acknowledged.
        self.lock.sync_all()
    }

    fn create_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600).open(self.path.join(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn unreadable(&self, name: &str, source: io::Error) -> OpenError {
        OpenError::Unreadable { path: self.path.join(name), source }
    }
}
