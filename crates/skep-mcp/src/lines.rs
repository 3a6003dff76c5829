//! Messages on standard input and output: one to a line.

use bytes::{Bytes, BytesMut};

/// Cuts what is read into lines, and never holds more than one of them.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: BytesMut,
    /// So much of the buffer has no line end.
    searched: usize,
    longest: usize,
    /// What is left of a line that is too long, while it comes.
    skipped: Option<Ends>,
}

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// All of it.
    Whole(Bytes),
    /// It was longer than allowed, and is gone but for this.
    TooLong(Ends),
}

/// How many bytes are kept of the beginning of a line, and of its end.
const KEPT: usize = 1 << 10;

/// The beginning and the end of a line that nobody reads. They say what it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    /// Its first bytes.
    pub first: Vec<u8>,
    /// Its last bytes, which may be some of the first.
    pub last: Vec<u8>,
}

impl Ends {
    /// Those of a line.
    pub fn of(line: &[u8]) -> Self {
        let mut ends = Self::default();
        ends.add(line);
        ends
    }

    fn add(&mut self, part: &[u8]) {
        let missing = KEPT.saturating_sub(self.first.len()).min(part.len());
        self.first.extend_from_slice(&part[..missing]);
        self.last.extend_from_slice(&part[part.len().saturating_sub(KEPT)..]);
        self.last.drain(..self.last.len().saturating_sub(KEPT));
    }
}

impl LineSplitter {
    /// A splitter of lines up to so many bytes.
    pub fn new(longest: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, longest, skipped: None }
    }

    /// Where to read to. What is read has to be taken with [`Self::next_line`] before more is.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// How many bytes it holds.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// The next line that is there in full.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', unsearched).map(|end| self.searched + end) else {
                self.searched = self.buffer.len();
                if self.searched > self.longest || self.skipped.is_some() {
                    self.skipped.get_or_insert_default().add(&self.buffer);
                    self.buffer.clear();
                    self.searched = 0;
                }
                return None;
            };
            let mut line = self.buffer.split_to(end + 1);
            self.searched = 0;
            line.truncate(end);
            if end > self.longest || self.skipped.is_some() {
                let mut ends = self.skipped.take().unwrap_or_default();
                ends.add(&line);
                return Some(Line::TooLong(ends));
            }
            let line = trim(line.freeze());
            if !line.is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// What is left when nothing more will come: a last line without an end.
    pub fn finish(mut self) -> Option<Line> {
        self.buffer.extend_from_slice(b"\n");
        self.next_line()
    }
}

fn trim(line: Bytes) -> Bytes {
    let trimmed = line.trim_ascii();
    if trimmed.len() == line.len() { line } else { line.slice_ref(trimmed) }
}

/// The part of a line that may be a message when the line as it is is none: programs print other text around it.
pub fn object_in(line: &Bytes) -> Option<Bytes> {
    let start = memchr::memchr(b'{', line)?;
    let end = memchr::memrchr(b'}', line)? + 1;
    (start < end && (start, end) != (0, line.len())).then(|| line.slice(start..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]], longest: usize) -> Vec<Line> {
        let mut splitter = LineSplitter::new(longest);
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.buffer().extend_from_slice(chunk);
            lines.extend(std::iter::from_fn(|| splitter.next_line()));
        }
        lines.extend(splitter.finish());
        lines
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_are_found_however_they_arrive() {
        let expected = vec![whole("{\"a\":1}"), whole("b c"), whole("last")];
        let text = b"{\"a\":1}\r\n\n  b c \n \nlast";
        assert_eq!(split(&[text], 100), expected);
        for at in 0..text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]], 100), expected, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(split(&bytes, 100), expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_and_the_next_one_is_read() {
        let too_long = |line: &[u8]| Line::TooLong(Ends::of(line));
        assert_eq!(split(&[b"123456\nok\n"], 5), [too_long(b"123456"), whole("ok")]);
        assert_eq!(split(&[b"1234", b"5678", b"9\nok"], 5), [too_long(b"123456789"), whole("ok")]);
        assert_eq!(split(&[b"123456"], 5), [too_long(b"123456")]);
    }

    #[test]
    fn the_ends_of_a_line_are_kept_however_it_arrives() {
        let line: Vec<u8> = (0..10 * KEPT).map(|number| b'a' + u8::try_from(number % 26).unwrap()).collect();
        let expected = Ends { first: line[..KEPT].to_vec(), last: line[9 * KEPT..].to_vec() };
        assert_eq!(Ends::of(&line), expected);
        for size in [1, 7, KEPT - 1, KEPT, KEPT + 1, 5 * KEPT] {
            let text = [&*line, b"\nok\n"].concat();
            let chunks: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(split(&chunks, 100), [Line::TooLong(expected.clone()), whole("ok")], "{size}");
        }
    }

    #[test]
    fn an_object_is_found_within_other_text() {
        let find = |text: &'static str| object_in(&Bytes::from_static(text.as_bytes()));
        assert_eq!(find("INFO {\"a\":{}} done").unwrap(), "{\"a\":{}}");
        assert_eq!(find("{\"a\":1}"), None);
        assert_eq!(find("} {"), None);
        assert_eq!(find("nothing"), None);
    }
}
