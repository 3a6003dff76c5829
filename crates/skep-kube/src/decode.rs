//! Reading JSON as the real server does: every repeated member is told, and mistakes are told in its words, which are
//! those of Go.
//!
//! As there, bytes that are not UTF-8 become replacement characters, the last of several equal members counts, and
//! integers beyond 64 bits become floating-point numbers.

mod numbers;
mod reader;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::go_text;
use numbers::Numbers;
pub(crate) use numbers::whole;
use reader::Reader;

/// Nesting beyond this is refused. The real server allows 10 000 levels; whatever reads stored objects back with
/// `serde_json` allows 128.
pub const MAX_DEPTH: usize = 120;

/// More repeated members, and more unusual numbers, than this are not listed.
const MAX_LISTED: usize = 100;

/// Why bytes are not a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    #[error("invalid character {} {place}", go_text::quoted_character(*.character))]
    InvalidCharacter { character: char, place: String },
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    NumberOutOfRange(String),
}

/// A document, and what is odd about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decoded {
    pub value: Value,
    /// A message for each member that occurs more than once, of which the last one counts.
    pub duplicates: Vec<String>,
    pub numbers: UnusualNumbers,
}

impl Decoded {
    /// The same with the members of every object in order, so that whoever goes through them does so in order.
    fn sorted(mut self) -> Self {
        self.value.sort_all_objects();
        self
    }
}

/// The numbers of a document that are not written like integers, as they are written, by their paths: where an integer
/// must be, `1.0` and `1e3` are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnusualNumbers(BTreeMap<String, String>);

impl UnusualNumbers {
    /// How the number at a path is written, if not like an integer.
    pub fn at(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

/// A document as it is written.
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    Reader::new(bytes, Numbers::AsWritten).document().map(Decoded::sorted)
}

/// An object on its way into the store.
pub fn decode_object(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    Reader::new(bytes, Numbers::AsStored).document().map(Decoded::sorted)
}

#[cfg(test)]
mod tests;
