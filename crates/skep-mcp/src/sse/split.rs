//! Cuts a stream into events.

use bytes::{Bytes, BytesMut};

/// A part of a stream. All parts together are the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// One event with the blank line that ends it. It may hold comments only, or nothing at all.
    Event(Bytes),
    /// A part of an event that is larger than the splitter may hold.
    Part(Bytes),
}

/// Finds the ends of events. It holds at most one of them, up to a size.
///
/// Lines end with CR, LF or both. An event is complete with the CR of its blank line; if a LF follows, that is the first
/// byte of the next piece. So no event waits for the byte after it, and the pieces do not depend on how the stream
/// arrives.
#[derive(Debug)]
pub struct Splitter {
    buffer: BytesMut,
    /// So much of the buffer has been looked at.
    searched: usize,
    largest: usize,
    /// Whether the line so far has no characters.
    is_blank: bool,
    is_after_cr: bool,
    /// Whether the beginning of the event is gone already.
    is_cut: bool,
}

impl Splitter {
    /// A splitter that holds events up to so many bytes.
    pub fn new(largest: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, largest, is_blank: true, is_after_cr: false, is_cut: false }
    }

    /// Holds events up to so many bytes from now on.
    pub fn hold(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// Adds what has arrived. Take all pieces before adding more.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// How many bytes it holds.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The next piece that is there.
    pub fn next_piece(&mut self) -> Option<Piece> {
        if let Some(end) = self.find_end() {
            let event = self.buffer.split_to(end).freeze();
            self.searched = 0;
            self.is_blank = true;
            let is_cut = std::mem::take(&mut self.is_cut);
            let is_whole = !is_cut && event.len() <= self.largest;
            return Some(if is_whole { Piece::Event(event) } else { Piece::Part(event) });
        }
        let is_too_large = self.is_cut || self.buffer.len() > self.largest;
        (is_too_large && !self.buffer.is_empty()).then(|| {
            self.is_cut = true;
            self.searched = 0;
            Piece::Part(self.buffer.split().freeze())
        })
    }

    /// The LF that is left of the blank line of an event, when nothing has come after it: many clients wait for it, and
    /// should not have to wait for the next event. Take all pieces before.
    pub fn rest_of_line_end(&mut self) -> Option<Bytes> {
        // A LF on its own would have been an event.
        (self.buffer.as_ref() == b"\n").then(|| {
            self.searched = 0;
            self.buffer.split().freeze()
        })
    }

    /// What is left when the stream ends within an event.
    pub fn finish(self) -> Option<Bytes> {
        (!self.buffer.is_empty()).then(|| self.buffer.freeze())
    }

    /// Where the event ends that the buffer begins with.
    fn find_end(&mut self) -> Option<usize> {
        while let Some(rest) = self.buffer.get(self.searched..).filter(|rest| !rest.is_empty()) {
            let Some(at) = memchr::memchr2(b'\r', b'\n', rest) else {
                self.is_blank = false;
                self.is_after_cr = false;
                self.searched = self.buffer.len();
                return None;
            };
            let is_cr = rest[at] == b'\r';
            let is_second_half = at == 0 && !is_cr && self.is_after_cr;
            let is_blank = at == 0 && self.is_blank;
            self.searched += at + 1;
            self.is_after_cr = is_cr;
            if !is_second_half && is_blank {
                return Some(self.searched);
            }
            self.is_blank = true;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]], largest: usize) -> (Vec<Piece>, Option<Bytes>) {
        let mut splitter = Splitter::new(largest);
        let mut pieces = Vec::new();
        for chunk in chunks {
            splitter.push(chunk);
            pieces.extend(std::iter::from_fn(|| splitter.next_piece()));
        }
        (pieces, splitter.finish())
    }

    fn events(texts: &[&'static str]) -> Vec<Piece> {
        texts.iter().map(|text| Piece::Event(Bytes::from_static(text.as_bytes()))).collect()
    }

    #[test]
    fn every_kind_of_line_end_ends_an_event() {
        for (text, expected) in [
            ("data: 1\n\ndata: 2\n\n", &["data: 1\n\n", "data: 2\n\n"][..]),
            ("data: 1\r\rdata: 2\r\r", &["data: 1\r\r", "data: 2\r\r"]),
            ("data: 1\r\n\r\ndata: 2\r\n\r\n", &["data: 1\r\n\r", "\ndata: 2\r\n\r"]),
            ("a\r\n\n\r\r\n", &["a\r\n\n", "\r", "\r"]),
            ("\n\n", &["\n", "\n"]),
        ] {
            for size in 1..=text.len() {
                let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                let (pieces, _) = split(&chunks, 100);
                assert_eq!(pieces, events(expected), "{text:?} in chunks of {size}");
            }
        }
    }

    #[test]
    fn the_rest_of_a_line_end_does_not_wait_for_the_next_event() {
        let mut splitter = Splitter::new(100);
        for (chunk, event, rest) in [
            ("data: 1\r\n\r\n", Some("data: 1\r\n\r"), Some("\n")),
            ("data: 2\r\n\r", Some("data: 2\r\n\r"), None),
            ("\n", None, Some("\n")),
            ("data: 3\n", None, None),
            ("\n", Some("data: 3\n\n"), None),
            ("\n", Some("\n"), None),
        ] {
            splitter.push(chunk.as_bytes());
            assert_eq!(splitter.next_piece(), event.and_then(|event| events(&[event]).pop()), "{chunk:?}");
            assert_eq!(splitter.next_piece(), None);
            assert_eq!(splitter.rest_of_line_end().as_deref(), rest.map(str::as_bytes), "{chunk:?}");
        }
    }

    #[test]
    fn an_event_beyond_the_limit_comes_in_parts() {
        let text = b"data: 1\n\ndata: much too long\n\ndata: 2\n\ndata: rest";
        for size in [1, 3, 7, text.len()] {
            let chunks: Vec<&[u8]> = text.chunks(size).collect();
            let (pieces, rest) = split(&chunks, 12);
            let whole: Vec<&Piece> = pieces.iter().filter(|piece| matches!(piece, Piece::Event(_))).collect();
            assert_eq!(whole.len(), 2, "chunks of {size}: {pieces:?}");
            let mut all: Vec<u8> = Vec::new();
            for piece in pieces {
                let (Piece::Event(bytes) | Piece::Part(bytes)) = piece;
                all.extend_from_slice(&bytes);
            }
            all.extend_from_slice(&rest.unwrap());
            assert_eq!(all, text);
        }
    }
}
