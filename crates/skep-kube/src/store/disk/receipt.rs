//! What was acknowledged last, noted in the data file itself.
//!
//! redb takes a newest transaction that does not verify for one that was cut short, and goes back to the one before.
//! Whether anybody was told of it, only we know. So when a transaction is on the disk, and before anybody is told, its
//! revision is noted where redb keeps nothing: in its first page, behind its header (its `docs/design.md`).
//!
//! That takes no sync. The note is with the operating system at once, so `kill -9` cannot lose it; it is on the disk
//! with the next transaction at the latest, whose sync takes the page along, or when the system writes by itself.

use std::io::{self, ErrorKind};

use redb::StorageBackend;
use sha2::{Digest as _, Sha256};

/// Written in turn, in sectors of their own, so that a power failure spoils one of them at most.
const PLACES: [u64; 2] = [2048, 3072];
const MARK: [u8; 8] = *b"skepnote";
const MARKED: usize = MARK.len() + size_of::<u64>();
const LENGTH: usize = 2 * MARKED;

/// The notes in one file.
#[derive(Debug)]
pub(super) struct Receipts {
    acknowledged: u64,
    /// The place of the older note.
    next: usize,
}

/// What is found in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Note {
    Absent,
    Damaged,
    Of(u64),
}

impl Receipts {
    pub(super) fn read(file: &impl StorageBackend) -> io::Result<Self> {
        let [first, second] = PLACES;
        let (first, second) = (note(file, first)?, note(file, second)?);
        if (first, second) == (Note::Damaged, Note::Damaged) {
            return Err(io::Error::new(ErrorKind::InvalidData, "its notes of what was acknowledged are unreadable"));
        }
        let (first, second) = (first.revision(), second.revision());
        Ok(Self { acknowledged: first.max(second), next: usize::from(first > second) })
    }

    /// The newest revision that somebody may have been told of. Zero where none was ever noted.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Notes a revision that is on the disk.
    pub(super) fn write(&mut self, file: &impl StorageBackend, revision: u64) -> io::Result<()> {
        let mut bytes = [0; LENGTH];
        let (marked, sum) = bytes.split_at_mut(MARKED);
        marked[..MARK.len()].copy_from_slice(&MARK);
        marked[MARK.len()..].copy_from_slice(&revision.to_le_bytes());
        sum.copy_from_slice(&Sha256::digest(marked)[..MARKED]);
        file.write(PLACES[self.next], &bytes)?;
        *self = Self { acknowledged: revision, next: 1 - self.next };
        Ok(())
    }
}

impl Note {
    fn revision(self) -> u64 {
        if let Self::Of(revision) = self { revision } else { 0 }
    }
}

fn note(file: &impl StorageBackend, place: u64) -> io::Result<Note> {
    let mut bytes = [0; LENGTH];
    file.read(place, &mut bytes)?;
    if bytes == [0; LENGTH] {
        return Ok(Note::Absent);
    }
    let (marked, sum) = bytes.split_at(MARKED);
    let revision = marked.strip_prefix(&MARK).and_then(|revision| revision.try_into().ok());
    let is_whole = Sha256::digest(marked).starts_with(sum);
    Ok(revision.filter(|_| is_whole).map_or(Note::Damaged, |revision| Note::Of(u64::from_le_bytes(revision))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    fn page() -> InMemoryBackend {
        let page = InMemoryBackend::new();
        page.set_len(4096).unwrap();
        page
    }

    #[test]
    fn the_newest_note_counts_and_the_one_before_is_still_there() {
        let page = page();
        let mut receipts = Receipts::read(&page).unwrap();
        assert_eq!(receipts.acknowledged(), 0);
        for revision in [2, 3, 9, 100] {
            receipts.write(&page, revision).unwrap();
            assert_eq!(Receipts::read(&page).unwrap().acknowledged(), revision);
        }
        let newest = PLACES[1 - receipts.next];
        page.write(newest + 9, &[0xff]).unwrap();
        let mut receipts = Receipts::read(&page).unwrap();
        assert_eq!(receipts.acknowledged(), 9);
        receipts.write(&page, 101).unwrap();
        assert_eq!(note(&page, newest).unwrap(), Note::Of(101), "the damaged one is written over first");
    }

    #[test]
    fn two_notes_that_make_no_sense_are_told() {
        let page = page();
        for place in PLACES {
            page.write(place, b"something").unwrap();
        }
        assert_eq!(Receipts::read(&page).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
