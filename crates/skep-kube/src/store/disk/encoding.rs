//! How a record looks in the data file.
//!
//! All numbers are little endian: revision (8 bytes), created (8), number of labels (4), for each label the length of
//! its name (4), the name, the length of its value (4), the value; then the object to the end. The key is the key.
//! A change of this layout needs a new `FORMAT_VERSION`.

use super::super::key::Key;
use super::super::record::{Labels, Record};
use super::super::text::Text;

pub(super) fn encode(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(record.size());
    bytes.extend_from_slice(&record.revision.to_le_bytes());
    bytes.extend_from_slice(&record.created.to_le_bytes());
    put_length(&mut bytes, record.labels.iter().len());
    for (name, value) in record.labels.iter() {
        put_text(&mut bytes, name);
        put_text(&mut bytes, value);
    }
    bytes.extend_from_slice(&record.object.bytes());
    bytes
}

/// None when the bytes are not what `encode` writes.
pub(super) fn decode(key: Key, bytes: &[u8]) -> Option<Record> {
    let mut rest = bytes;
    let revision = u64::from_le_bytes(take(&mut rest)?);
    let created = u64::from_le_bytes(take(&mut rest)?);
    let count = take_length(&mut rest)?;
    let labels: Option<Labels> = (0..count)
        .map(|_| Some((take_text(&mut rest)?, take_text(&mut rest)?)))
        .collect::<Option<Vec<_>>>()
        .map(|pairs| pairs.into_iter().collect());
    Some(Record { key, revision, created, labels: labels?, object: Text::new(rest) })
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_length(bytes, text.len());
    bytes.extend_from_slice(text.as_bytes());
}

/// Lengths beyond four gibibytes do not occur: redb refuses values that large.
fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(take(rest)?)).ok()
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let length = take_length(rest)?;
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    std::str::from_utf8(taken).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            key: Key::new("/pods", "default", "web"),
            revision: 9,
            created: 4,
            object: "{\"spec\":{}}".into(),
            labels: [("app", "shop"), ("tier", "")].into_iter().collect(),
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(decode(record().key, &encode(&record())), Some(record()));
    }

    #[test]
    fn a_record_that_is_cut_before_its_object_is_refused() {
        let encoded = encode(&record());
        for length in 0..encoded.len() - record().object.len() {
            assert_eq!(decode(record().key, &encoded[..length]), None, "{length}");
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        let mut encoded = encode(&record());
        encoded[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(record().key, &encoded), None);
    }
}
