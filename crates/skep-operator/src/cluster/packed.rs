//! JSON that is kept for long and looked at now and then: compressed, and in no more memory than that needs.
//!
//! A compressor is many times larger than what it makes. Each thread has one and keeps it: small things that stay, made
//! between large ones that come and go, would hold on to the memory of both.

use std::cell::RefCell;
use std::fmt;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use serde_json::Value;

/// How much room is made at a time where more is needed than was thought.
const STEP: usize = 4 * 1024;

/// What a thread compresses and decompresses with, and where it writes meanwhile.
struct Tools {
    compress: Compress,
    decompress: Decompress,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

thread_local! {
    static TOOLS: RefCell<Tools> = RefCell::new(Tools {
        compress: Compress::new(Compression::fast(), false),
        decompress: Decompress::new(false),
        plain: Vec::new(),
        packed: Vec::new(),
    });
}

/// A JSON document, compressed.
#[derive(Clone)]
pub(super) struct Packed(Box<[u8]>);

impl Packed {
    pub(super) fn new(document: &Value) -> Option<Self> {
        TOOLS.with_borrow_mut(|tools| {
            tools.plain.clear();
            serde_json::to_writer(&mut tools.plain, document).ok()?;
            tools.compress.reset();
            tools.packed.clear();
            let mut status = Status::Ok;
            while status != Status::StreamEnd {
                tools.packed.reserve(STEP);
                let read = usize::try_from(tools.compress.total_in()).ok()?;
                let rest = tools.plain.get(read..)?;
                status = tools.compress.compress_vec(rest, &mut tools.packed, FlushCompress::Finish).ok()?;
            }
            Some(Self(tools.packed.as_slice().into()))
        })
    }

    pub(super) fn document(&self) -> Option<Value> {
        TOOLS.with_borrow_mut(|tools| {
            tools.decompress.reset(false);
            tools.plain.clear();
            let mut status = Status::Ok;
            while status != Status::StreamEnd {
                tools.plain.reserve(STEP);
                let before = (tools.decompress.total_in(), tools.decompress.total_out());
                let rest = self.0.get(usize::try_from(before.0).ok()?..)?;
                status = tools.decompress.decompress_vec(rest, &mut tools.plain, FlushDecompress::None).ok()?;
                if before == (tools.decompress.total_in(), tools.decompress.total_out()) && status != Status::StreamEnd
                {
                    return None;
                }
            }
            serde_json::from_slice(&tools.plain).ok()
        })
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It can be a ConfigMap's, and long.
        write!(formatter, "{} bytes", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_of_every_size_come_back() {
        for count in [0, 1, 100, 20_000] {
            // Numbers that do not repeat are hard to compress.
            let numbers: Vec<u64> = (0..count).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let document = json!({"numbers": numbers, "text": "a".repeat(usize::try_from(count).unwrap())});
            let packed = Packed::new(&document).unwrap();
            assert_eq!(packed.document(), Some(document), "{count}");
        }
        assert_eq!(Packed([].into()).document(), None);
        assert_eq!(Packed([0xff; 9].into()).document(), None);
    }
}
