//! Objects that are kept for long and looked at now and then, in as little memory as that takes.
//!
//! What is written for one workload is written for the next, with another name in it. So a few objects of a kind are
//! kept word for word, and of the others only what those do not say. Everything about an object is in one piece: many
//! small ones would need more room for being many than for what they are.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, LazyLock};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use skep_control::Keeper;

/// How much room is made at a time where more is needed than was thought.
const STEP: usize = 4 * 1024;
/// An object that takes more than this is not like any before it: those that come after may be like it.
const STRANGE: usize = 256;
/// More effort does not make them smaller.
const EFFORT: Compression = Compression::new(4);
/// How much is kept word for word. The compressor sees 32 KiB, of which the object itself needs a part.
const MOST_WORDS: usize = 24 * 1024;

/// The compressor of all kinds, and where it writes meanwhile: it is a thousand times larger than what it makes.
static COMPRESSOR: LazyLock<Mutex<Compressor>> = LazyLock::new(|| {
    Mutex::new(Compressor { compress: Compress::new(EFFORT, false), plain: Vec::new(), packed: Vec::new() })
});

struct Compressor {
    compress: Compress,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

struct Decompressor {
    decompress: Decompress,
    plain: Vec<u8>,
}

thread_local! {
    static DECOMPRESSOR: RefCell<Decompressor> =
        RefCell::new(Decompressor { decompress: Decompress::new(false), plain: Vec::new() });
}

/// Packs the objects of one kind.
#[derive(Debug, Default)]
pub struct Packer {
    /// Objects word for word, one after the other. It only grows, so that what was packed with the beginning of it can be
    /// unpacked with that.
    words: RwLock<Vec<u8>>,
}

/// An object as JSON, compressed.
pub struct Packed {
    bytes: Box<[u8]>,
    /// How many words there were.
    words: u16,
}

impl<T: Serialize + DeserializeOwned> Keeper<T> for Packer {
    type Kept = Packed;

    fn keep(&self, object: &Arc<T>) -> Packed {
        self.pack(object.as_ref())
    }

    fn recall(&self, kept: &Packed) -> Option<Arc<T>> {
        self.unpack(kept).map(Arc::new)
    }
}

impl Packer {
    /// Something in few bytes.
    pub fn pack<T: Serialize>(&self, thing: &T) -> Packed {
        let mut compressor = COMPRESSOR.lock();
        compressor.plain.clear();
        let written = serde_json::to_writer(&mut compressor.plain, thing).ok();
        // There is nothing in an object of Kubernetes that JSON could not say.
        written.and_then(|()| self.compress(&mut compressor)).unwrap_or(Packed { bytes: Box::default(), words: 0 })
    }

    /// What was packed, here and as the same type.
    pub fn unpack<T: DeserializeOwned>(&self, packed: &Packed) -> Option<T> {
        DECOMPRESSOR.with_borrow_mut(|decompressor| {
            decompressor.run(self.words.read().get(..usize::from(packed.words))?, &packed.bytes)?;
            serde_json::from_slice(&decompressor.plain).ok()
        })
    }

    /// Compresses what is in `plain`, and learns from it. Nobody else can meanwhile: there is one compressor.
    fn compress(&self, compressor: &mut Compressor) -> Option<Packed> {
        let words = {
            let words = self.words.read();
            compressor.run(&words)?;
            words.len()
        };
        if compressor.packed.len() > STRANGE && words + compressor.plain.len() <= MOST_WORDS {
            self.words.write().extend_from_slice(&compressor.plain);
        }
        Some(Packed { bytes: compressor.packed.as_slice().into(), words: u16::try_from(words).ok()? })
    }
}

impl Compressor {
    fn run(&mut self, words: &[u8]) -> Option<()> {
        self.compress.reset();
        self.packed.clear();
        if !words.is_empty() {
            self.compress.set_dictionary(words).ok()?;
        }
        let mut status = Status::Ok;
        while status != Status::StreamEnd {
            self.packed.reserve(STEP);
            let rest = self.plain.get(usize::try_from(self.compress.total_in()).ok()?..)?;
            status = self.compress.compress_vec(rest, &mut self.packed, FlushCompress::Finish).ok()?;
        }
        Some(())
    }
}

impl Decompressor {
    fn run(&mut self, words: &[u8], packed: &[u8]) -> Option<()> {
        self.decompress.reset(false);
        self.plain.clear();
        if !words.is_empty() {
            self.decompress.set_dictionary(words).ok()?;
        }
        let mut status = Status::Ok;
        while status != Status::StreamEnd {
            self.plain.reserve(STEP);
            let before = (self.decompress.total_in(), self.decompress.total_out());
            let rest = packed.get(usize::try_from(before.0).ok()?..)?;
            status = self.decompress.decompress_vec(rest, &mut self.plain, FlushDecompress::None).ok()?;
            if before == (self.decompress.total_in(), self.decompress.total_out()) && status != Status::StreamEnd {
                return None;
            }
        }
        Some(())
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It can be a ConfigMap's, and long.
        write!(formatter, "{} bytes", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Words that do not repeat are hard to compress.
    fn text(seed: u64, count: u64) -> String {
        let word = |number: u64| (seed + number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string();
        (0..count).map(word).collect()
    }

    #[test]
    fn objects_of_every_size_come_back() {
        let packer = Packer::default();
        let objects: Vec<Value> = [0, 1, 100, 20_000, 3, 90]
            .into_iter()
            .map(|count| json!({"text": text(count, count), "letters": "a".repeat(usize::try_from(count).unwrap())}))
            .collect();
        let pairs: Vec<(Packed, &Value)> = objects.iter().map(|object| (packer.pack(object), object)).collect();
        for (kept, object) in pairs.iter().rev().chain(&pairs) {
            assert_eq!(packer.unpack::<Value>(kept).as_ref(), Some(*object), "{kept:?}");
        }
        assert_eq!(packer.unpack::<Value>(&Packed { bytes: Box::default(), words: 0 }), None);
        assert_eq!(packer.unpack::<Value>(&Packed { bytes: [0xff; 9].into(), words: 0 }), None);
        assert_eq!(packer.unpack::<Value>(&Packed { bytes: [0xff; 9].into(), words: u16::MAX }), None);
    }

    #[test]
    fn what_was_said_before_takes_no_room_again() {
        let packer = Packer::default();
        let object = |name: u64, seed: u64| json!({"name": text(name, 1), "spec": text(seed, 100)});
        let sizes = |seed: u64| {
            let size = |name: u64| packer.pack(&object(name, seed)).bytes.len();
            (size(1), size(2))
        };
        for seed in [1_000, 2_000, 3_000] {
            let (first, second) = sizes(seed);
            assert!(first > STRANGE && second < 100, "{seed}: {first} {second}");
        }
        for seed in 4..100 {
            sizes(seed * 1_000);
        }
        assert!(packer.words.read().len() <= MOST_WORDS, "there is an end to it");
        assert!(sizes(1_000).1 < 100, "what was learned first is not forgotten");
    }
}
