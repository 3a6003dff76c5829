//! The durable half of the store: the current records and the revision, in one redb file inside a data folder.
//!
//! Nothing here is read after the store is opened; it is written for the next time. The history is not kept: a watch
//! that is older than the process starts over.

mod encoding;
mod error;
mod folder;
mod staged;

use std::fs::File;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

pub use error::OpenError;
pub use folder::FORMAT_VERSION;

use self::encoding::{decode, encode};
use self::folder::Folder;
use self::staged::StagedFile;
use super::event::Event;
use super::key::Key;
use super::record::Record;
use super::writer::Log;

/// Resource, namespace and name to an encoded record.
const RECORDS: TableDefinition<(&str, &str, &str), &[u8]> = TableDefinition::new("records");
/// Numbers about the whole store.
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
const REVISION: &str = "revision";
/// The revision of a store that nothing was ever written to.
pub(super) const FIRST_REVISION: u64 = 1;

/// What redb may keep of the file in memory. Small, because every record is in the index anyway and redb's pages are
/// only read again when their neighbours change.
const CACHE_BYTES: usize = 1024 * 1024;

/// How far redb says a repair has come when it finds the newest transaction damaged and is about to go back to the one
/// before. After an interrupted write that is right: the write was never acknowledged. Otherwise it would lose one that
/// was.
const DAMAGE_FOUND: f64 = 0.3;

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

/// The open database. Dropping it closes the file cleanly and lets go of the folder.
#[derive(Debug)]
pub(super) struct Disk {
    // Before the folder, so that the file is closed while the folder is still locked.
    database: Database,
    _folder: Folder,
}

impl Disk {
    /// Opens a folder, or makes a new one. A folder that cannot be opened is left exactly as it was.
    pub(super) fn open(path: &Path, durability: Durability) -> Result<Loaded, OpenError> {
        let folder = Folder::open(path, |file| create(file, durability))?;
        let file = folder.open_data_file()?;
        // redb checks what it reads; where it does not, a damaged page trips one of its assertions.
        let (database, records, revision) = catch_unwind(AssertUnwindSafe(|| load(file, durability)))
            .unwrap_or_else(|_| Err(damaged("its structure makes no sense")))
            .map_err(|error| explain(error, folder.data_file()))?;
        Ok(Loaded { disk: Self { database, _folder: folder }, records, revision })
    }
}

impl Log for Disk {
    fn write(&self, events: &[Event]) -> Result<(), redb::Error> {
        let Some(last) = events.last() else { return Ok(()) };
        let transaction = self.database.begin_write()?;
        {
            let mut records = transaction.open_table(RECORDS)?;
            for event in events {
                let key = event.key();
                let place = (&*key.resource, &*key.namespace, &*key.name);
                match event.after() {
                    Some(record) => records.insert(place, encode(record).as_slice())?,
                    None => records.remove(place)?,
                };
            }
            transaction.open_table(NUMBERS)?.insert(REVISION, last.revision)?;
        }
        transaction.commit()?;
        Ok(())
    }
}

/// Makes a new, empty database in an empty file.
fn create(file: File, durability: Durability) -> Result<(), redb::Error> {
    let database = database_builder().create_with_backend(StagedFile::direct(file, durability)?)?;
    let transaction = database.begin_write()?;
    transaction.open_table(RECORDS)?;
    transaction.open_table(NUMBERS)?.insert(REVISION, FIRST_REVISION)?;
    transaction.commit()?;
    Ok(())
}

/// Reads and checks everything, with all of redb's own writes held back, and lets those through at the end.
fn load(file: File, durability: Durability) -> Result<(Database, Vec<Record>, u64), redb::Error> {
    let staged = StagedFile::staged(file, durability)?;
    let may_roll_back = staged.was_interrupted();
    let mut builder = database_builder();
    builder.set_repair_callback(move |repair| {
        if (repair.progress() - DAMAGE_FOUND).abs() < 0.1 && !may_roll_back {
            repair.abort();
        }
    });
    let database = match builder.create_with_backend(staged.clone()) {
        Err(DatabaseError::RepairAborted) => return Err(damaged("a checksum does not match")),
        opened => opened?,
    };
    let (records, revision) = read_all(&database)?;
    staged.release()?;
    Ok((database, records, revision))
}

fn read_all(database: &Database) -> Result<(Vec<Record>, u64), redb::Error> {
    let transaction = database.begin_read()?;
    let revision = transaction.open_table(NUMBERS)?.get(REVISION)?.map(|revision| revision.value());
    let revision = revision.ok_or_else(|| damaged("it does not say its revision"))?;
    let mut records = Vec::new();
    for entry in transaction.open_table(RECORDS)?.iter()? {
        let (place, value) = entry?;
        let (resource, namespace, name) = place.value();
        let record = decode(Key::new(resource, namespace, name), value.value())
            .filter(|record| record.created <= record.revision && record.revision <= revision)
            .ok_or_else(|| damaged(&format!("the record of {resource} {namespace}/{name} is unreadable")))?;
        records.push(record);
    }
    Ok((records, revision))
}

fn database_builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

fn damaged(cause: &str) -> redb::Error {
    redb::Error::Corrupted(cause.to_owned())
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
