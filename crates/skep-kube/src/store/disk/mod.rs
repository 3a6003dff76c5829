//! The durable half of the store: a data folder, with the current records and the revision in one redb file.
//!
//! Nothing here is read after the store is opened; it is written for the next time. The history is not kept: a watch
//! that is older than the process starts over.

mod data_file;
mod encoding;
mod error;
mod folder;
mod receipt;
mod staged;

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

pub use error::OpenError;
pub use folder::FORMAT_VERSION;

use self::data_file::{DataFile, damaged};
use self::folder::Folder;
use super::event::Event;
use super::record::Record;
use super::writer::Log;

/// The revision of a store that nothing was ever written to.
pub(super) const FIRST_REVISION: u64 = 1;

/// How far a write must have gone before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// On the disk: it survives a power failure.
    #[default]
    Immediate,
    /// With the operating system: it survives `kill -9`, not a power failure. For tests.
    None,
}

/// What an opened folder held.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) disk: Disk,
    pub(super) records: Vec<Record>,
    pub(super) revision: u64,
}

/// An open folder. Dropping it closes the file in order and lets go of the folder.
#[derive(Debug)]
pub(super) struct Disk {
    // Before the folder, so that the file is closed while the folder is still locked.
    /// None between a write that failed and one that does not.
    data: Option<DataFile>,
    durability: Durability,
    has_failed_to_sync: bool,
    folder: Folder,
}

impl Disk {
    /// Opens a folder, or makes a new one unless it must be there. One that cannot be opened is left exactly as it was,
    /// and so is one that nothing is written to.
    pub(super) fn open(path: &Path, must_exist: bool, durability: Durability) -> Result<Loaded, OpenError> {
        let folder = Folder::open(path, must_exist, |file| DataFile::create(file, durability))?;
        let (data, records) = load(&folder, durability, DataFile::records)?;
        let revision = data.revision();
        let disk = Self { data: Some(data), durability, has_failed_to_sync: false, folder };
        Ok(Loaded { disk, records, revision })
    }
}

impl Log for Disk {
    fn write(&mut self, events: &[Event]) -> Result<(), OpenError> {
        let data = self.data.as_mut().ok_or(redb::Error::DatabaseClosed);
        data.and_then(|data| data.write(events)).map_err(|error| explain(error, self.folder.data_file()))
    }

    fn resume(&mut self) -> Result<u64, OpenError> {
        // The file must be closed before it is opened again.
        if let Some(data) = self.data.take() {
            self.has_failed_to_sync |= data.has_failed_to_sync();
        }
        if self.has_failed_to_sync {
            return Err(OpenError::Uncertain { path: self.folder.data_file() });
        }
        let (data, revision) = load(&self.folder, self.durability, |data| Ok(data.revision()))?;
        let data = self.data.insert(data);
        data.write(&[]).map_err(|error| explain(error, self.folder.data_file()))?;
        Ok(revision)
    }
}

/// Opens the data file of a folder and reads what is wanted.
fn load<T>(
    folder: &Folder,
    durability: Durability,
    read: impl FnOnce(&DataFile) -> Result<T, redb::Error>,
) -> Result<(DataFile, T), OpenError> {
    let file = folder.open_data_file()?;
    let load = || {
        let data = DataFile::open(file, durability)?;
        let wanted = read(&data)?;
        Ok((data, wanted))
    };
    // redb checks what it reads; where it does not, a damaged page trips one of its assertions.
    let loaded = catch_unwind(AssertUnwindSafe(load)).unwrap_or_else(|_| Err(damaged("its structure makes no sense")));
    loaded.map_err(|error| explain(error, folder.data_file()))
}

/// Tells a disk that cannot be read from a file that makes no sense.
fn explain(error: redb::Error, path: PathBuf) -> OpenError {
    match error {
        redb::Error::Io(source) if !matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
            OpenError::Unreadable { path, source }
        }
        redb::Error::Io(source) => OpenError::Damaged { path, cause: source.to_string() },
        redb::Error::Corrupted(cause) => OpenError::Damaged { path, cause },
        other => OpenError::Damaged { path, cause: other.to_string() },
    }
}
