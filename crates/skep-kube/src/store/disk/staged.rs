//! The data file as redb sees it, with its writes held back until something is to be changed.
//!
//! redb repairs what it opens, and marks the file as open, before anyone could have looked at the contents. A damaged
//! file must stay as it is, and so must a good one when something else keeps the server from starting. So those writes
//! go to memory first. Before the first change they are replayed in their order, syncs included, so that the file is as
//! safe against a crash as if redb had written them itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use redb::backends::FileBackend;
use redb::{DatabaseError, StorageBackend};

use super::Durability;

const BLOCK: u64 = 4096;

/// Where redb's header keeps its flags (its `docs/design.md`).
const FLAGS: u64 = 9;
/// The newest transaction was synced before it was made the current one.
const TWO_PHASES: u8 = 4;

#[derive(Debug, Clone)]
pub(super) struct StagedFile(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: FileBackend,
    durability: Durability,
    has_failed_to_sync: AtomicBool,
    /// None once writes go to the file.
    stage: Mutex<Option<Stage>>,
}

/// What the file would be.
#[derive(Debug)]
struct Stage {
    length: u64,
    /// How much of the file still shows through.
    visible: u64,
    /// Blocks that were written to, by number.
    blocks: BTreeMap<u64, Vec<u8>>,
    journal: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Write(u64, Vec<u8>),
    SetLength(u64),
    Sync,
}

impl StagedFile {
    /// A file that is written to at once.
    pub(super) fn direct(file: File, durability: Durability) -> Result<Self, DatabaseError> {
        Ok(Self::new(FileBackend::new(file)?, durability, None))
    }

    /// An existing file whose writes are held back.
    pub(super) fn staged(file: File, durability: Durability) -> Result<Self, DatabaseError> {
        let file = FileBackend::new(file)?;
        let length = file.len()?;
        if length <= FLAGS {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is empty or cut off").into());
        }
        let mut flags = [0];
        file.read(FLAGS, &mut flags)?;
        let mut stage = Stage { length, visible: length, blocks: BTreeMap::new(), journal: Vec::new() };
        // A file that was closed in two phases is trusted by redb without a look at the checksums, and lets it load
        // the list of free pages, where damage would surface much later. Without the flag it verifies every page
        // before it uses it, and works the list out anew.
        let [found] = flags;
        stage.patch(&file, FLAGS, &[found & !TWO_PHASES])?;
        Ok(Self::new(file, durability, Some(stage)))
    }

    fn new(file: FileBackend, durability: Durability, stage: Option<Stage>) -> Self {
        Self(Arc::new(Inner { file, durability, has_failed_to_sync: AtomicBool::new(false), stage: Mutex::new(stage) }))
    }

    /// Lets everything that was held back through. When that fails, nothing further gets through: redb does not know
    /// what the file lacks.
    pub(super) fn release(&self) -> io::Result<()> {
        let mut held = self.0.stage.lock();
        let Some(stage) = &*held else { return Ok(()) };
        for step in &stage.journal {
            match step {
                Step::Write(offset, data) => self.0.file.write(*offset, data)?,
                Step::SetLength(length) => self.0.file.set_len(*length)?,
                Step::Sync => self.0.sync()?,
            }
        }
        *held = None;
        Ok(())
    }

    pub(super) fn has_failed_to_sync(&self) -> bool {
        self.0.has_failed_to_sync.load(Ordering::Relaxed)
    }
}

impl Inner {
    fn sync(&self) -> io::Result<()> {
        match self.durability {
            Durability::Immediate => {
                let synced = self.file.sync_data();
                self.has_failed_to_sync.fetch_or(synced.is_err(), Ordering::Relaxed);
                synced
            }
            Durability::None => Ok(()),
        }
    }
}

impl StorageBackend for StagedFile {
    fn len(&self) -> io::Result<u64> {
        match &*self.0.stage.lock() {
            Some(stage) => Ok(stage.length),
            None => self.0.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match &*self.0.stage.lock() {
            Some(stage) => stage.read(&self.0.file, offset, out),
            None => self.0.file.read(offset, out),
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        match &mut *self.0.stage.lock() {
            Some(stage) => stage.set_length(length),
            None => return self.0.file.set_len(length),
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        match &mut *self.0.stage.lock() {
            Some(stage) => stage.journal.push(Step::Sync),
            None => return self.0.sync(),
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        match &mut *self.0.stage.lock() {
            Some(stage) => {
                stage.patch(&self.0.file, offset, data)?;
                stage.journal.push(Step::Write(offset, data.to_vec()));
                Ok(())
            }
            None => self.0.file.write(offset, data),
        }
    }
}

impl Stage {
    fn read(&self, file: &FileBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= self.length);
        let end = end.ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, "it ends too early"))?;
        for (start, part) in parts(offset, end, out) {
            match self.blocks.get(&(start / BLOCK)) {
                Some(block) => copy(&block[within(start)..], part),
                None => self.read_file(file, start, part)?,
            }
        }
        Ok(())
    }

    /// What the file has, and zeros where it was cut or does not reach.
    fn read_file(&self, file: &FileBackend, start: u64, part: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(self.visible.saturating_sub(start)).unwrap_or(usize::MAX).min(part.len());
        let (there, missing) = part.split_at_mut(there);
        missing.fill(0);
        if there.is_empty() { Ok(()) } else { file.read(start, there) }
    }

    fn patch(&mut self, file: &FileBackend, offset: u64, data: &[u8]) -> io::Result<()> {
        let end = offset.saturating_add(data.len() as u64);
        self.length = self.length.max(end);
        let mut data = data.to_vec();
        for (start, part) in parts(offset, end, &mut data) {
            let number = start / BLOCK;
            if !self.blocks.contains_key(&number) {
                let mut block = vec![0; within(BLOCK - 1) + 1];
                self.read_file(file, number * BLOCK, &mut block)?;
                self.blocks.insert(number, block);
            }
            if let Some(block) = self.blocks.get_mut(&number) {
                block[within(start)..][..part.len()].copy_from_slice(part);
            }
        }
        Ok(())
    }

    fn set_length(&mut self, length: u64) {
        self.blocks.retain(|number, _| number * BLOCK < length);
        // What was cut off reads as zeros when the file grows again.
        if let Some(block) = self.blocks.get_mut(&(length / BLOCK)) {
            block[within(length)..].fill(0);
        }
        self.visible = self.visible.min(length);
        self.length = length;
        self.journal.push(Step::SetLength(length));
    }
}

/// Cuts a range into pieces that each lie in one block.
fn parts(offset: u64, end: u64, mut bytes: &mut [u8]) -> impl Iterator<Item = (u64, &mut [u8])> {
    let mut start = offset;
    std::iter::from_fn(move || {
        if start >= end {
            return None;
        }
        let next = ((start / BLOCK + 1) * BLOCK).min(end);
        let length = within(next - start - 1) + 1;
        let (part, rest) = std::mem::take(&mut bytes).split_at_mut_checked(length)?;
        bytes = rest;
        Some((std::mem::replace(&mut start, next), part))
    })
}

/// The place of an offset in its block.
fn within(offset: u64) -> usize {
    // Less than a block, so it fits.
    (offset % BLOCK) as usize
}

fn copy(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(&from[..to.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    #[derive(Debug, Clone)]
    enum Operation {
        Write(u64, Vec<u8>),
        SetLength(u64),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            4 => (0..20_000_u64, prop::collection::vec(any::<u8>(), 1..9000)).prop_map(|(at, data)| Operation::Write(at, data)),
            1 => (10..30_000_u64).prop_map(Operation::SetLength),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn reads_as_if_it_had_been_written_and_is_after_the_release(
            operations in prop::collection::vec(operation(), 0..20),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            let original: Vec<u8> = (0..10_000_u32).map(|number| (number * 7 % 251) as u8).collect();
            fs::write(&path, &original).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let staged = StagedFile::staged(file, Durability::None).unwrap();
            let mut expected = original.clone();
            expected[9] &= !TWO_PHASES;
            for operation in operations {
                match operation {
                    Operation::Write(at, data) => {
                        let start = usize::try_from(at).unwrap();
                        let end = start + data.len();
                        if end > expected.len() {
                            expected.resize(end, 0);
                            staged.set_len(end as u64).unwrap();
                        }
                        expected[start..end].copy_from_slice(&data);
                        staged.write(at, &data).unwrap();
                    }
                    Operation::SetLength(length) => {
                        expected.resize(usize::try_from(length).unwrap(), 0);
                        staged.set_len(length).unwrap();
                    }
                }
            }
            let read = |staged: &StagedFile| {
                let mut bytes = vec![0; usize::try_from(staged.len().unwrap()).unwrap()];
                staged.read(0, &mut bytes).unwrap();
                bytes
            };
            prop_assert!(read(&staged) == expected);
            prop_assert!(fs::read(&path).unwrap() == original);
            staged.release().unwrap();
            // The flag is hidden, not changed, unless redb writes it.
            let flags = fs::read(&path).unwrap()[9];
            expected[9] = if expected[9] == original[9] & !TWO_PHASES { flags } else { expected[9] };
            prop_assert!(read(&staged) == expected);
        }
    }

    #[test]
    fn a_read_beyond_the_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [0; 100]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let staged = StagedFile::staged(file, Durability::None).unwrap();
        assert_eq!(staged.read(90, &mut [0; 11]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(staged.read(u64::MAX, &mut [0; 11]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        staged.read(90, &mut [0; 10]).unwrap();
    }
}
