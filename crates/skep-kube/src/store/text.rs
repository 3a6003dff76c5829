//! The text of an object, in little memory.
//!
//! Objects stay in memory for as long as they exist, and their text says the same things again and again. Most of them
//! are packed therefore, which costs microseconds and leaves a third.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use lz4_flex::block;

/// From this length on all who read a text share one copy, so that a hundred clients who take their time do not cost a
/// hundred of them.
pub const SHARED: usize = 16 * 1024;
/// Which lengths are packed. Shorter text gains little.
const PACKED: Range<usize> = 1024..SHARED;

/// The text of an object.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Form);

#[derive(Clone, PartialEq, Eq)]
enum Form {
    Plain(Bytes),
    Packed { bytes: Bytes, length: usize },
}

impl Text {
    /// Takes a copy, so that a large buffer does not stay in memory with a small part of it.
    pub fn new(text: &[u8]) -> Self {
        Self(packed(text).unwrap_or_else(|| Form::Plain(Bytes::copy_from_slice(text))))
    }

    /// The text itself.
    pub fn bytes(&self) -> Bytes {
        match &self.0 {
            Form::Plain(bytes) => bytes.clone(),
            // What was packed here can be unpacked.
            Form::Packed { bytes, length } => block::decompress(bytes, *length).unwrap_or_default().into(),
        }
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Plain(bytes) => bytes.len(),
            Form::Packed { length, .. } => *length,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much memory it takes.
    pub fn size(&self) -> usize {
        let (Form::Plain(bytes) | Form::Packed { bytes, .. }) = &self.0;
        bytes.len()
    }
}

/// Objects hold secrets: what is in them is not shown.
impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Text({} bytes)", self.len())
    }
}

impl Default for Text {
    fn default() -> Self {
        Self(Form::Plain(Bytes::new()))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

/// The packed form, if it is worth it.
fn packed(text: &[u8]) -> Option<Form> {
    if !PACKED.contains(&text.len()) {
        return None;
    }
    ROOM.with_borrow_mut(|room| {
        let length = block::compress_into(text, room).ok().filter(|length| *length <= text.len() / 4 * 3)?;
        Some(Form::Packed { bytes: Bytes::copy_from_slice(room.get(..length)?), length: text.len() })
    })
}

thread_local! {
    /// Room for the worst case, without which nothing is packed at all. It stays, so that it leaves no holes.
    static ROOM: RefCell<Vec<u8>> = RefCell::new(vec![0; block::get_maximum_output_size(PACKED.end)]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn what_is_worth_it_is_packed() {
        for (length, is_packed) in [(0, false), (1023, false), (1024, true), (16 * 1024 - 1, true), (16 * 1024, false)]
        {
            let plain: Vec<u8> = b"image: a/b, ".iter().copied().cycle().take(length).collect();
            let text = Text::new(&plain);
            assert_eq!((text.bytes().as_ref(), text.len()), (plain.as_slice(), length));
            assert_eq!(text.size() < length, is_packed, "{length}");
        }
        let noise: Vec<u8> = (0..4000_u64).map(|place| Sha256::digest(place.to_le_bytes())[0]).collect();
        assert_eq!((Text::new(&noise).bytes().as_ref(), Text::new(&noise).size()), (noise.as_slice(), noise.len()));
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in prop::collection::vec(0_u8..8, 0..6000)) {
            let kept = Text::new(&text);
            prop_assert!(kept.bytes() == text);
            prop_assert!(kept == Text::new(&text));
        }
    }
}
