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
        self.begin(field, value.len());
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
        self.begin(field, values.len() * 8);
        for value in values {
            self.0.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// An empty message with room for so many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Fields that were written before.
    pub(crate) fn append(&mut self, fields: &Self) {
        self.0.extend_from_slice(&fields.0);
    }

    /// One of the attributes of whatever this is. Its parts lie in each other and each begins with its length: they are
    /// counted before, so that nothing has to be written twice.
    pub(crate) fn attribute<'a>(&mut self, field: u32, key: &str, value: impl Into<Value<'a>>) {
        let value = value.into();
        let any = value.size();
        self.begin(field, delimited(key.len()) + delimited(any));
        self.text(1, key);
        self.begin(2, any);
        match value {
            Value::Text(text) => self.text(1, text),
            Value::Bool(is_so) => self.varint(2, u64::from(is_so)),
            Value::Whole(number) => self.varint(3, number),
            Value::Real(number) => self.double(4, number),
        }
    }

    /// The beginning of a field of so many bytes, which the caller writes.
    fn begin(&mut self, field: u32, size: usize) {
        self.tag(field, DELIMITED);
        self.raw_varint(size as u64);
    }
}

/// How many bytes a number takes.
fn varint(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// How many bytes a field takes that has so many, and a tag of one.
fn delimited(size: usize) -> usize {
    1 + varint(size as u64) + size
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

impl Value<'_> {
    /// How many bytes it takes, its tag included.
    fn size(self) -> usize {
        match self {
            Self::Text(text) => delimited(text.len()),
            Self::Bool(_) => 2,
            Self::Whole(number) => 1 + varint(number),
            Self::Real(_) => 1 + size_of::<f64>(),
        }
    }
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

    #[test]
    fn attributes_are_written_as_messages_in_messages() {
        let long = "x".repeat(300);
        let values: [(Value<'_>, Vec<u8>); 8] = [
            ("".into(), vec![0x0a, 0]),
            ("hive".into(), [&[0x0a, 4][..], b"hive"].concat()),
            (long.as_str().into(), [&[0x0a, 0xac, 0x02][..], long.as_bytes()].concat()),
            (true.into(), vec![0x10, 1]),
            (127.into(), vec![0x18, 127]),
            (128.into(), vec![0x18, 0x80, 1]),
            (u64::MAX.into(), [&[0x18][..], &[0xff; 9], &[1]].concat()),
            (1.5.into(), [&[0x21][..], &1.5_f64.to_le_bytes()].concat()),
        ];
        for (value, any) in values {
            let mut parts = Message::default();
            parts.text(1, "key");
            parts.bytes(2, &any);
            let (mut expected, mut written) = (Message::default(), Message::default());
            expected.message(9, &parts);
            written.attribute(9, "key", value);
            assert_eq!(written.into_bytes(), expected.into_bytes(), "{value:?}");
        }
    }
}
