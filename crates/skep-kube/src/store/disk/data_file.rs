//! The data file while it is open: the current records and the revision, in redb's tables.

use std::fs::File;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::super::event::Event;
use super::super::key::Key;
use super::super::record::Record;
use super::encoding::{decode, encode};
use super::receipt::Receipts;
use super::staged::StagedFile;
use super::{Durability, FIRST_REVISION};

/// Resource, namespace and name to an encoded record.
const RECORDS: TableDefinition<(&str, &str, &str), &[u8]> = TableDefinition::new("records");
/// Numbers about the whole store.
const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
const REVISION: &str = "revision";

/// What redb may keep of the file in memory. Small, because every record is in the index anyway and redb's pages are
/// only read again when their neighbours change.
const CACHE_BYTES: usize = 1024 * 1024;

/// Dropping it closes the file in order, if anything was written.
#[derive(Debug)]
pub(super) struct DataFile {
    database: Database,
    file: StagedFile,
    receipts: Receipts,
    revision: u64,
}

impl DataFile {
    /// Makes a new, empty database in an empty file.
    pub(super) fn create(file: File, durability: Durability) -> Result<(), redb::Error> {
        let database = builder().create_with_backend(StagedFile::direct(file, durability)?)?;
        let transaction = database.begin_write()?;
        transaction.open_table(RECORDS)?;
        transaction.open_table(NUMBERS)?.insert(REVISION, FIRST_REVISION)?;
        transaction.commit()?;
        Ok(())
    }

    /// Opens a file and checks that it has all that was acknowledged. Nothing is written, not even what redb repairs,
    /// before the first change is.
    pub(super) fn open(file: File, durability: Durability) -> Result<Self, redb::Error> {
        let file = StagedFile::staged(file, durability)?;
        let receipts = Receipts::read(&file)?;
        let database = builder().create_with_backend(file.clone())?;
        let revision = database.begin_read()?.open_table(NUMBERS)?.get(REVISION)?.map(|revision| revision.value());
        let revision = revision.ok_or_else(|| damaged("it does not say its revision"))?;
        let acknowledged = receipts.acknowledged();
        if revision < acknowledged {
            return Err(damaged(&format!(
                "what was written last cannot be read (it ends with revision {revision}, and {acknowledged} was acknowledged)"
            )));
        }
        Ok(Self { database, file, receipts, revision })
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn records(&self) -> Result<Vec<Record>, redb::Error> {
        let mut records = Vec::new();
        for entry in self.database.begin_read()?.open_table(RECORDS)?.iter()? {
            let (place, value) = entry?;
            let (resource, namespace, name) = place.value();
            let record = decode(Key::new(resource, namespace, name), value.value())
                .filter(|record| record.created <= record.revision && record.revision <= self.revision)
                .ok_or_else(|| damaged(&format!("the record of {resource} {namespace}/{name} is unreadable")))?;
            records.push(record);
        }
        Ok(records)
    }

    /// Writes the events, all or none. Without any it finds out whether something can be written.
    pub(super) fn write(&mut self, events: &[Event]) -> Result<(), redb::Error> {
        self.file.release()?;
        let revision = events.last().map_or(self.revision, |event| event.revision);
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
            transaction.open_table(NUMBERS)?.insert(REVISION, revision)?;
        }
        transaction.commit()?;
        self.revision = revision;
        self.receipts.write(&self.file, revision)?;
        Ok(())
    }

    /// Whether the disk has failed to keep what it was given. What it holds since then cannot be found out by reading:
    /// the operating system answers from memory.
    pub(super) fn has_failed_to_sync(&self) -> bool {
        self.file.has_failed_to_sync()
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

pub(super) fn damaged(cause: &str) -> redb::Error {
    redb::Error::Corrupted(cause.to_owned())
}
