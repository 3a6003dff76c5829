//! Reading JSON as the real server does: every repeated member is told, and mistakes are told in its words, which are
//! those of Go.
//!
//! As there, bytes that are not UTF-8 become replacement characters, the last of several equal members counts, and
//! integers beyond 64 bits become floating-point numbers.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use crate::go_text;
use crate::schema::path;

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
    read(bytes, Numbers::AsWritten)
}

/// An object on its way into the store.
pub fn decode_object(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    read(bytes, Numbers::AsStored)
}

fn read(bytes: &[u8], numbers: Numbers) -> Result<Decoded, DecodeError> {
    let mut reader = Reader { bytes, numbers, position: 0, depth: 0, path: Vec::new(), found: Decoded::default() };
    let value = reader.value()?;
    match reader.next_after_space() {
        None => Ok(Decoded { value, ..reader.found }),
        Some(_) => Err(reader.invalid("after top-level value")),
    }
}

/// What becomes of a whole number that is written like a fraction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// `1.0` is a floating-point number, which shows in messages.
    AsWritten,
    /// `1.0` is 1.
    AsStored,
}

enum Step {
    Member(String),
    Item(usize),
}

struct Reader<'a> {
    bytes: &'a [u8],
    numbers: Numbers,
    position: usize,
    depth: usize,
    path: Vec<Step>,
    /// What is odd about what has been read so far.
    found: Decoded,
}

impl Reader<'_> {
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

/// The largest number up to which every whole number is a floating-point number too.
const MAX_EXACT: f64 = 9_007_199_254_740_991.0;

/// Whole numbers are whole however they are written. The server does the same when it stores them; until then it takes
/// `1.0` for a floating-point number, which shows in a set that holds `1` and `1.0`, and in how errors print it.
#[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number in range")]
fn number(text: &str, numbers: Numbers) -> Result<Value, DecodeError> {
    let float: f64 = text.parse().unwrap_or(f64::INFINITY);
    if numbers == Numbers::AsStored && float.fract() == 0.0 && float.abs() <= MAX_EXACT {
        return Ok((float as i64).into());
    }
    Number::from_f64(float).map(Value::Number).ok_or_else(|| DecodeError::NumberOutOfRange(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_members_are_told_once_with_their_path() {
        let text = br#"{"spec":{"s":1,"s":2,"s":3,"l":[{"a":1,"a":2}]},"metadata":{},"metadata":{"x":1}}"#;
        let Decoded { value, duplicates, .. } = decode_object(text).unwrap();
        assert_eq!(
            duplicates,
            [r#"duplicate field "spec.s""#, r#"duplicate field "spec.l[0].a""#, r#"duplicate field "metadata""#]
        );
        assert_eq!(value["spec"]["s"], 3);
        assert_eq!(value["metadata"]["x"], 1);
    }

    /// Each line was tried on the real server.
    #[test]
    fn mistakes_are_told_in_the_words_of_the_real_server() {
        for (text, message) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            (r#"{"a":1}}"#, "invalid character '}' after top-level value"),
            ("{s:1}", "invalid character 's' looking for beginning of object key string"),
            ("{'s':1}", r"invalid character '\'' looking for beginning of object key string"),
            (r#"{"s" 1}"#, "invalid character '1' after object key"),
            (r#"{"s":1,}"#, "invalid character '}' looking for beginning of object key string"),
            (r#"{"s":1 "b":2}"#, r#"invalid character '"' after object key:value pair"#),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("[1 2]", "invalid character '2' after array element"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("[truX]", "invalid character 'X' in literal true (expecting 'e')"),
            ("[01]", "invalid character '1' after array element"),
            ("[1.]", "invalid character ']' after decimal point in numeric literal"),
            ("[1ex]", "invalid character 'x' in exponent of numeric literal"),
            ("[-x]", "invalid character 'x' in numeric literal"),
            ("[\"a\nb\"]", r"invalid character '\n' in string literal"),
            (r#"["\x"]"#, "invalid character 'x' in string escape code"),
            (r#"["\u12g4"]"#, r"invalid character 'g' in \u hexadecimal character escape"),
            ("[é]", "invalid character 'Ã' looking for beginning of value"),
            ("[\u{1}]", r"invalid character '\x01' looking for beginning of value"),
            ("[1e999]", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        ] {
            assert_eq!(decode_object(text.as_bytes()).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = |levels: usize| decode_object(format!("{}{}", "[".repeat(levels), "]".repeat(levels)).as_bytes());
        assert!(deep(MAX_DEPTH).is_ok());
        let too_deep = "invalid character '[' exceeded max depth";
        assert_eq!(deep(MAX_DEPTH + 1).unwrap_err().to_string(), too_deep);
        assert_eq!(decode_object("[".repeat(1_000_000).as_bytes()).unwrap_err().to_string(), too_deep);
    }

    #[test]
    fn texts_and_numbers_are_read_as_go_reads_them() {
        let Decoded { value, numbers, .. } =
            decode_object(br#"["\ud83d\udc1d\ud800\n", 1.0, 1e3, 9223372036854775808, 0.5]"#).unwrap();
        assert_eq!(value[0], "🐝\u{fffd}\n");
        assert_eq!(value[1].to_string(), "1");
        assert_eq!(value[2], 1000);
        assert!(value[3].is_f64());
        assert_eq!(value[4], 0.5);
        assert_eq!((numbers.at("[1]"), numbers.at("[2]"), numbers.at("[0]")), (Some("1.0"), Some("1e3"), None));
    }

    #[test]
    fn complaints_are_those_of_the_real_server() {
        let table: [(&[u8], &str); 27] = [
            (b"", "unexpected end of JSON input"),
            (b"  ", "unexpected end of JSON input"),
            (b"[", "unexpected end of JSON input"),
            (b"[\"a", "unexpected end of JSON input"),
            (b"nonsense", "invalid character 'o' in literal null (expecting 'u')"),
            (b"{\"a\":1} x", "invalid character 'x' after top-level value"),
            (b"\xff\xfe", "invalid character 'ÿ' looking for beginning of value"),
            (b"[{\"a\":\"/x\",}]", "invalid character '}' looking for beginning of object key string"),
            (b"[{\"a\":\"b\" \"c\":1}]", "invalid character '\"' after object key:value pair"),
            (b"[\"\x01\"]", "invalid character '\\x01' in string literal"),
            (b"[\"\\q\"]", "invalid character 'q' in string escape code"),
            (b"[01]", "invalid character '1' after array element"),
            (b"[-]", "invalid character ']' in numeric literal"),
            (b"[1.]", "invalid character ']' after decimal point in numeric literal"),
            (b"[1e]", "invalid character ']' in exponent of numeric literal"),
            (b"{a}", "invalid character 'a' looking for beginning of object key string"),
            (b"{'a'}", "invalid character '\\'' looking for beginning of object key string"),
            (b"[tru]", "invalid character ']' in literal true (expecting 'e')"),
            (b"[1 2]", "invalid character '2' after array element"),
            (b"[\"\\uzz\"]", "invalid character 'z' in \\u hexadecimal character escape"),
            (b"[nul", "invalid character ' ' in literal null (expecting 'l')"),
            (b"{\"a\"}", "invalid character '}' after object key"),
            (b"{\"a\":}", "invalid character '}' looking for beginning of value"),
            (b"[,]", "invalid character ',' looking for beginning of value"),
            (b"]", "invalid character ']' looking for beginning of value"),
            (b"\"\\", "invalid character ' ' in string escape code"),
            (b"[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ];
        for (document, complaint) in table {
            let error = decode(document).unwrap_err();
            assert_eq!(error.to_string(), complaint, "{}", String::from_utf8_lossy(document));
        }
        assert_eq!(
            decode("[".repeat(20_000).as_bytes()).unwrap_err().to_string(),
            "invalid character '[' exceeded max depth"
        );
    }

    #[test]
    fn odd_but_valid_documents_are_read_as_go_reads_them() {
        assert_eq!(decode(br#"{"a":1,"a":2}"#).unwrap().value, json!({ "a": 2 }));
        assert_eq!(decode(br#""\ud800""#).unwrap().value, json!("\u{fffd}"));
        assert_eq!(decode(br#""\ud83d\ude00\ud83d\u0041""#).unwrap().value, json!("😀\u{fffd}A"));
        assert_eq!(decode(b"\"\xff\xfe\"").unwrap().value, json!("\u{fffd}\u{fffd}"));
        assert_eq!(decode(b"12345678901234567890").unwrap().value, json!(12_345_678_901_234_567_890.0));
        assert_eq!(decode(b" -0.5e1 ").unwrap().value, json!(-5.0));
    }

    proptest::proptest! {
        #[test]
        fn what_serde_reads_is_read_alike(text in r#"[\[\]{}",:0-9a-z\\ .eE+-]{0,60}"#) {
            let ours = decode_object(text.as_bytes());
            if let Ok(theirs) = serde_json::from_str::<Value>(&text) {
                proptest::prop_assert!(ours.is_ok(), "{theirs} {ours:?}");
            }
        }

        #[test]
        fn bytes_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            let _ = decode_object(&bytes);
        }
    }
}
