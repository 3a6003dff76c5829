//! Headers, compressed: one stream of zlib for each direction of a connection, flushed after every block.

use std::io;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::dictionary;

/// Longer blocks are refused: Kubernetes sends some hundred bytes.
const LONGEST: usize = 64 * 1024;
/// How much room is made at a time.
const PIECE: usize = 4 * 1024;

pub(super) type Headers = Vec<(String, String)>;

/// Reads the headers of a connection. Every block must go through it, in order.
pub(super) struct Reader {
    zlib: Decompress,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { zlib: Decompress::new(true) }
    }

    pub(super) fn read(&mut self, block: &[u8]) -> io::Result<Headers> {
        let plain = self.inflate(block)?;
        parse(&plain).ok_or_else(|| malformed("headers cut short"))
    }

    fn inflate(&mut self, block: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::with_capacity(PIECE);
        let begun = self.zlib.total_in();
        loop {
            let before = (self.zlib.total_in(), plain.len());
            let done = usize::try_from(before.0 - begun).unwrap_or(usize::MAX);
            let rest = block.get(done..).unwrap_or_default();
            match self.zlib.decompress_vec(rest, &mut plain, FlushDecompress::Sync) {
                Ok(Status::StreamEnd) => return Err(malformed("compression ended")),
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    self.zlib.set_dictionary(&dictionary::bytes()).map_err(io::Error::other)?;
                    continue;
                }
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
            let is_read = self.zlib.total_in() - begun >= block.len() as u64;
            let has_room = plain.len() < plain.capacity();
            if is_read && has_room {
                return Ok(plain);
            }
            if plain.len() >= LONGEST {
                return Err(malformed("headers too long"));
            }
            if has_room && before == (self.zlib.total_in(), plain.len()) {
                return Err(malformed("headers cannot be read"));
            }
            plain.reserve(PIECE);
        }
    }
}

/// Writes the headers of a connection.
pub(super) struct Writer {
    zlib: Compress,
}

impl Writer {
    pub(super) fn new() -> io::Result<Self> {
        let mut zlib = Compress::new(Compression::default(), true);
        zlib.set_dictionary(&dictionary::bytes()).map_err(io::Error::other)?;
        Ok(Self { zlib })
    }

    pub(super) fn write(&mut self, headers: &[(&str, &str)]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        number(&mut plain, headers.len());
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            number(&mut plain, text.len());
            plain.extend_from_slice(text.as_bytes());
        }
        let mut block = Vec::with_capacity(PIECE);
        let begun = self.zlib.total_in();
        loop {
            let done = usize::try_from(self.zlib.total_in() - begun).unwrap_or(usize::MAX);
            let rest = plain.get(done..).unwrap_or_default();
            self.zlib.compress_vec(rest, &mut block, FlushCompress::Sync).map_err(io::Error::other)?;
            if block.len() < block.capacity() {
                return Ok(block);
            }
            block.reserve(PIECE);
        }
    }
}

fn number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

fn parse(mut bytes: &[u8]) -> Option<Headers> {
    let count = take_number(&mut bytes)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let name = take_text(&mut bytes)?;
        headers.push((name, take_text(&mut bytes)?));
    }
    Some(headers)
}

fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    usize::try_from(u32::from_be_bytes(*number)).ok()
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let length = take_number(bytes)?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(String::from_utf8_lossy(text).into_owned())
}

pub(super) fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(headers: &[(&str, &str)]) -> Headers {
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn blocks_are_read_back_in_order() {
        let (mut writer, mut reader) = (Writer::new().unwrap(), Reader::new());
        for headers in [&[("streamtype", "error"), ("port", "8080")][..], &[], &[("streamtype", "data")]] {
            let block = writer.write(headers).unwrap();
            assert_eq!(reader.read(&block).unwrap(), owned(headers));
        }
    }

    #[test]
    fn long_headers_are_read_and_endless_ones_refused() {
        let (mut writer, mut reader) = (Writer::new().unwrap(), Reader::new());
        let long = "x".repeat(20_000);
        let block = writer.write(&[("long", &long)]).unwrap();
        assert_eq!(reader.read(&block).unwrap(), owned(&[("long", &long)]));
        let endless = "x".repeat(1 << 20);
        let block = writer.write(&[("endless", &endless)]).unwrap();
        assert!(reader.read(&block).is_err());
    }

    #[test]
    fn damage_is_an_error() {
        let block = Writer::new().unwrap().write(&[("port", "8080")]).unwrap();
        for length in 0..block.len() - 1 {
            // A part may by chance be readable, but never hang or panic.
            let _ = Reader::new().read(&block[..length]);
        }
        assert!(Reader::new().read(b"not zlib at all").is_err());
        assert!(parse(&[0, 0, 0, 9, 0, 0, 0, 1]).is_none());
    }
}
