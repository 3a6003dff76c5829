//! The reader of JSON.

use serde_json::{Map, Value};

use super::numbers::{Numbers, number};
use super::{DecodeError, Decoded, MAX_DEPTH, MAX_LISTED};
use crate::go_text;
use crate::schema::path;

enum Step {
    Member(String),
    Item(usize),
}

/// Reads a document byte by byte.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    numbers: Numbers,
    position: usize,
    depth: usize,
    path: Vec<Step>,
    /// What is odd about what has been read so far.
    found: Decoded,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], numbers: Numbers) -> Self {
        Self { bytes, numbers, position: 0, depth: 0, path: Vec::new(), found: Decoded::default() }
    }

    /// The whole document.
    pub(super) fn document(mut self) -> Result<Decoded, DecodeError> {
        let value = self.value()?;
        match self.next_after_space() {
            None => Ok(Decoded { value, ..self.found }),
            Some(_) => Err(self.invalid("after top-level value")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn next_after_space(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.position += 1;
        }
        self.peek()
    }

    /// The current byte does not belong here. At the end of the input a space takes its place, as in Go.
    fn invalid(&self, place: impl Into<String>) -> DecodeError {
        DecodeError::InvalidCharacter { character: char::from(self.peek().unwrap_or(b' ')), place: place.into() }
    }

    /// As [`Self::invalid`], where a space would have been fine.
    fn invalid_or_end(&self, place: &str) -> DecodeError {
        if self.peek().is_none() { DecodeError::UnexpectedEnd } else { self.invalid(place) }
    }

    fn value(&mut self) -> Result<Value, DecodeError> {
        match self.next_after_space() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.invalid_or_end("looking for beginning of value")),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, DecodeError>) -> Result<Value, DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(self.invalid("exceeded max depth"));
        }
        self.depth += 1;
        self.position += 1;
        let value = read(self)?;
        self.position += 1;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, DecodeError> {
        let mut members = Map::new();
        if self.next_after_space() == Some(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            if self.next_after_space() != Some(b'"') {
                return Err(self.invalid_or_end("looking for beginning of object key string"));
            }
            let name = self.string()?;
            if self.next_after_space() != Some(b':') {
                return Err(self.invalid_or_end("after object key"));
            }
            self.position += 1;
            self.path.push(Step::Member(name.clone()));
            if members.contains_key(&name) {
                self.note_duplicate();
            }
            let value = self.value()?;
            self.path.pop();
            members.insert(name, value);
            match self.next_after_space() {
                Some(b',') => self.position += 1,
                Some(b'}') => return Ok(Value::Object(members)),
                _ => return Err(self.invalid_or_end("after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Result<Value, DecodeError> {
        let mut items = Vec::new();
        if self.next_after_space() == Some(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            self.path.push(Step::Item(items.len()));
            items.push(self.value()?);
            self.path.pop();
            match self.next_after_space() {
                Some(b',') => self.position += 1,
                Some(b']') => return Ok(Value::Array(items)),
                _ => return Err(self.invalid_or_end("after array element")),
            }
        }
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Value, DecodeError> {
        for expected in word.chars() {
            if self.peek().map(char::from) != Some(expected) {
                return Err(self.invalid(format!("in literal {word} (expecting '{expected}')")));
            }
            self.position += 1;
        }
        Ok(value)
    }

    fn string(&mut self) -> Result<String, DecodeError> {
        self.position += 1;
        let mut text = Vec::new();
        loop {
            match self.peek() {
                None => return Err(DecodeError::UnexpectedEnd),
                Some(b'"') => {
                    self.position += 1;
                    return Ok(String::from_utf8(text).unwrap_or_else(|error| lossy(error.as_bytes())));
                }
                Some(b'\\') => {
                    self.position += 1;
                    self.escape(&mut text)?;
                }
                Some(0..=0x1f) => return Err(self.invalid("in string literal")),
                Some(byte) => {
                    text.push(byte);
                    self.position += 1;
                }
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), DecodeError> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.position += 1;
                let character = self.unicode_escape()?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.invalid("in string escape code")),
        };
        text.push(byte);
        self.position += 1;
        Ok(())
    }

    /// The character after `\u`, of two escapes when it is a surrogate pair. Half a pair is a replacement character.
    fn unicode_escape(&mut self) -> Result<char, DecodeError> {
        let first = self.four_digits()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let after = self.position;
        if first < 0xdc00 && self.bytes[after..].starts_with(b"\\u") {
            self.position += 2;
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.position = after;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_digits(&mut self) -> Result<u32, DecodeError> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return Err(self.invalid("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.position += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, DecodeError> {
        let start = self.position;
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        match self.peek() {
            Some(b'0') => self.position += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.invalid("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        let text = String::from_utf8_lossy(&self.bytes[start..self.position]);
        if let Ok(whole) = text.parse::<i64>() {
            return Ok(whole.into());
        }
        if self.found.numbers.0.len() < MAX_LISTED {
            let path = self.path();
            self.found.numbers.0.insert(path, text.to_string());
        }
        number(&text, self.numbers)
    }

    fn some_digits(&mut self, place: &str) -> Result<(), DecodeError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.invalid(place));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
    }

    /// Where the reader is.
    fn path(&self) -> String {
        let mut field = String::new();
        for step in &self.path {
            match step {
                Step::Member(name) => path::push_member(&mut field, name),
                Step::Item(index) => path::push_item(&mut field, *index),
            }
        }
        field
    }

    fn note_duplicate(&mut self) {
        let message = format!("duplicate field {}", go_text::quoted(&self.path()));
        let duplicates = &mut self.found.duplicates;
        if duplicates.len() < MAX_LISTED && !duplicates.contains(&message) {
            duplicates.push(message);
        }
    }
}

/// One replacement character for each byte that is not part of a character.
fn lossy(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                return text;
            }
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = &rest[1..];
            }
        }
    }
}
