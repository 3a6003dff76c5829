//! Finds where values begin and end, and refuses what is no JSON.
//!
//! No tree is built and nothing is copied. Nesting is counted, not recursed, so that no input can exhaust the stack.

use std::borrow::Cow;
use std::collections::HashSet;

use smallvec::SmallVec;

use super::decode;

/// How deep values may nest. Readers that recurse stop at about this depth.
pub const DEPTH: u32 = 127;

/// Where a value is in its text, quotes and brackets included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The value.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }
}

/// Why a text is no JSON that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Another character was expected.
    #[error("not JSON at byte {at}")]
    Syntax {
        /// Where.
        at: usize,
    },
    /// It nests deeper than [`DEPTH`].
    #[error("nested deeper than {DEPTH} values at byte {at}")]
    TooDeep {
        /// Where.
        at: usize,
    },
    /// A member is there twice, so that two readers could see two different objects.
    #[error("the member at byte {at} is there twice")]
    Duplicate {
        /// Where the second one is.
        at: usize,
    },
}

/// Goes through a text once, from its beginning.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// A scanner that begins within the text.
    pub(crate) fn from(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The first byte of what follows, space aside.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Nothing but space may follow.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        if self.peek().is_none() { Ok(()) } else { self.fail() }
    }

    /// Reads an object. `member` is told each name, with its quotes, and has to read the value that follows it.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Span) -> Result<(), JsonError>,
    ) -> Result<Span, JsonError> {
        self.peek();
        let start = self.at;
        self.take(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Span { start, end: self.at });
        }
        loop {
            let name = self.name()?;
            self.peek();
            member(self, name)?;
            if self.ends(b'}')? {
                return Ok(Span { start, end: self.at });
            }
        }
    }

    /// Reads an array. `item` has to read each value.
    pub(crate) fn array(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), JsonError>,
    ) -> Result<Span, JsonError> {
        self.peek();
        let start = self.at;
        self.take(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Span { start, end: self.at });
        }
        loop {
            self.peek();
            item(self)?;
            if self.ends(b']')? {
                return Ok(Span { start, end: self.at });
            }
        }
    }

    /// Reads any value.
    pub(crate) fn value(&mut self) -> Result<Span, JsonError> {
        self.peek();
        let start = self.at;
        let mut nest = Nest::default();
        loop {
            match self.peek() {
                Some(b'{') => {
                    nest.open(true).ok_or(JsonError::TooDeep { at: self.at })?;
                    self.at += 1;
                    if self.peek() != Some(b'}') {
                        self.name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    nest.open(false).ok_or(JsonError::TooDeep { at: self.at })?;
                    self.at += 1;
                    if self.peek() != Some(b']') {
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => self.number()?,
            }
            loop {
                let Some(is_object) = nest.innermost() else { return Ok(Span { start, end: self.at }) };
                match (self.peek(), is_object) {
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        nest.close();
                    }
                    (Some(b','), _) => {
                        self.at += 1;
                        if is_object {
                            self.name()?;
                        }
                        break;
                    }
                    _ => return self.fail(),
                }
            }
        }
    }

    /// Whether the container ends here, rather than going on after a comma.
    fn ends(&mut self, end: u8) -> Result<bool, JsonError> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            _ => self.fail(),
        }
    }

    /// The name of a member and the colon after it.
    fn name(&mut self) -> Result<Span, JsonError> {
        self.peek();
        let start = self.at;
        self.string()?;
        let end = self.at;
        self.peek();
        self.take(b':')?;
        Ok(Span { start, end })
    }

    fn string(&mut self) -> Result<(), JsonError> {
        self.take(b'"')?;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(0..0x20) | None => return self.fail(),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return self.fail();
                    }
                    self.at += 1;
                }
            }
            _ => return self.fail(),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { self.fail() } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        if self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            self.at += word.len();
            Ok(())
        } else {
            self.fail()
        }
    }

    fn take(&mut self, wanted: u8) -> Result<(), JsonError> {
        if self.byte() == Some(wanted) {
            self.at += 1;
            Ok(())
        } else {
            self.fail()
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax { at: self.at })
    }
}

/// Which containers are open: a bit each, set for objects.
#[derive(Debug, Default)]
struct Nest {
    objects: u128,
    depth: u32,
}

impl Nest {
    fn open(&mut self, is_object: bool) -> Option<()> {
        if self.depth == DEPTH {
            return None;
        }
        self.objects = self.objects << 1 | u128::from(is_object);
        self.depth += 1;
        Some(())
    }

    fn close(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn innermost(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.objects & 1 == 1)
    }
}

/// The names of an object's members, to find the second one of a kind.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    few: SmallVec<[Cow<'a, str>; 8]>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    /// So many are compared with each other; more are looked up.
    const FEW: usize = 16;

    /// Notes a name, and gives what it means.
    pub(crate) fn add(&mut self, scanner: &Scanner<'a>, span: Span) -> Result<Cow<'a, str>, JsonError> {
        let quoted = span.of(scanner.text());
        // A name that is half of a character is compared as it is written.
        let name = decode(quoted).unwrap_or(Cow::Borrowed(quoted));
        let is_new = if self.few.len() < Self::FEW {
            let is_new = !self.few.contains(&name);
            self.few.push(name.clone());
            is_new
        } else {
            !self.few.contains(&name) && self.many.insert(name.clone())
        };
        if is_new { Ok(name) } else { Err(JsonError::Duplicate { at: span.start }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.value().and_then(|_| scanner.end()).is_ok()
    }

    #[test]
    fn every_kind_of_value_is_found_to_its_end() {
        for text in
            ["null", "true", "false", "0", "-0.5e+10", "\"\"", "\"\\u00e9\\\"\"", "[]", "{}", "[1,[2],{\"a\":{}}]"]
        {
            let padded = format!(" \t{text}\r\n");
            let span = Scanner::new(&padded).value().unwrap();
            assert_eq!(span.of(&padded), text);
        }
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "01",
            "-",
            "1.",
            "1e",
            "+1",
            "tru",
            "nul1",
            "\"",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "[}",
            "{]",
            "1 1",
            "'a'",
            "NaN",
            "\u{feff}1",
            "[1}",
        ] {
            assert!(!accepts(text), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded_and_does_not_recurse() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(accepts(&nested(127)));
        assert!(!accepts(&nested(128)));
        assert!(!accepts(&"[{\"a\":".repeat(1 << 20)));
    }

    #[test]
    fn a_name_that_is_there_twice_is_found_however_it_is_written() {
        let many: Vec<String> = (0..100).map(|number| format!("\"{number}\":0,")).collect();
        let many = many.concat();
        for (text, is_good) in [
            (r#"{"a":1,"b":2}"#.to_owned(), true),
            (r#"{"a":1,"\u0061":2}"#.to_owned(), false),
            (format!("{{{many}\"last\":0}}"), true),
            (format!("{{{many}\"3\":0}}"), false),
            (format!("{{{many}\"77\":0}}"), false),
        ] {
            let mut names = Names::default();
            let read = Scanner::new(&text).object(|scanner, name| {
                names.add(scanner, name)?;
                scanner.value().map(drop)
            });
            assert_eq!(read.is_ok(), is_good, "{text}");
        }
    }
}
