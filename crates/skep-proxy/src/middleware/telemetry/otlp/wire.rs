//! The few shapes of protocol buffers that OTLP needs, written straight into bytes.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;
const FIXED32: u32 = 5;

/// A message on its way to be one.
#[derive(Debug, Default, Clone)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            // The lowest seven bits, and the sign that more of them come.
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn tag(&mut self, field: u32, kind: u32) {
        self.raw_varint(u64::from(field << 3 | kind));
    }

    pub(crate) fn varint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.raw_varint(value);
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn fixed32(&mut self, field: u32, value: u32) {
        self.tag(field, FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, DELIMITED);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    pub(crate) fn message(&mut self, field: u32, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// Numbers of 64 bits in a row.
    pub(crate) fn packed(&mut self, field: u32, values: impl ExactSizeIterator<Item = u64>) {
        self.tag(field, DELIMITED);
        self.raw_varint(values.len() as u64 * 8);
        for value in values {
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Fields that were written before.
    pub(crate) fn append(&mut self, fields: &Self) {
        self.0.extend_from_slice(&fields.0);
    }

    /// One of the attributes of whatever this is.
    pub(crate) fn attribute<'a>(&mut self, field: u32, key: &str, value: impl Into<Value<'a>>) {
        let mut pair = Self::default();
        pair.text(1, key);
        let mut any = Self::default();
        match value.into() {
            Value::Text(text) => any.text(1, text),
            Value::Bool(is_so) => any.varint(2, u64::from(is_so)),
            Value::Whole(number) => any.varint(3, number),
            Value::Real(number) => any.double(4, number),
        }
        pair.message(2, &any);
        self.message(field, &pair);
    }
}

/// What an attribute says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    Bool(bool),
    /// None of ours is below zero.
    Whole(u64),
    Real(f64),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value<'_> {
    fn from(is_so: bool) -> Self {
        Self::Bool(is_so)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_written_as_the_format_says() {
        let mut message = Message::default();
        message.varint(1, 150);
        message.text(2, "testing");
        message.fixed32(3, 1);
        message.packed(4, [1, 2].into_iter());
        let expected = [
            &[0x08, 0x96, 0x01][..],
            &[0x12, 0x07],
            b"testing",
            &[0x1d, 1, 0, 0, 0],
            &[0x22, 16, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(message.into_bytes(), expected.concat());
    }
}
