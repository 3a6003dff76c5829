//! The wire format of protobuf: numbers of seven bits a byte, and fields of a tag and a value.

/// Groups in groups beyond this are refused.
const MAX_GROUPS: usize = 100;

/// Why bytes are not protobuf, in the words of the decoders that Go generates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("unexpected EOF")]
    UnexpectedEnd,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    Length,
    #[error("proto: {message}: illegal tag {field} (wire type {wire_type})")]
    Tag { message: String, field: i32, wire_type: u8 },
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    #[error("proto: {0}: wiretype end group for non-group")]
    EndOfNoGroup(String),
    #[error("proto: unexpected end of group")]
    UnexpectedEndOfGroup,
}

pub const VARINT: u8 = 0;
pub const FIXED64: u8 = 1;
pub const DELIMITED: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// The value of a field as far as it can be told without knowing its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Delimited(&'a [u8]),
    /// Nothing that Kubernetes uses.
    Other(u8),
}

impl Raw<'_> {
    pub const fn wire_type(self) -> u8 {
        match self {
            Self::Varint(_) => VARINT,
            Self::Fixed64(_) => FIXED64,
            Self::Delimited(_) => DELIMITED,
            Self::Other(wire_type) => wire_type,
        }
    }
}

/// Reads the fields of one message.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Named in errors.
    message: &'a str,
}

impl<'a> Reader<'a> {
    pub const fn new(rest: &'a [u8], message: &'a str) -> Self {
        Self { rest, message }
    }

    /// The number and value of the next field, or none at the end.
    pub fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let value = match wire_type {
            VARINT => Raw::Varint(self.varint()?),
            FIXED64 => Raw::Fixed64(u64::from_le_bytes(*self.array()?)),
            DELIMITED => Raw::Delimited(self.delimited()?),
            END_GROUP => return Err(WireError::EndOfNoGroup(self.message.to_owned())),
            other => {
                self.skip(other)?;
                Raw::Other(other)
            }
        };
        Ok(Some((number, value)))
    }

    /// A number outside of a field, as in packed lists; none at the end.
    pub fn next_packed(&mut self) -> Result<Option<u64>, WireError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn tag(&mut self) -> Result<(u32, u8), WireError> {
        let tag = self.varint()?;
        let [low, ..] = tag.to_le_bytes();
        let wire_type = low & 7;
        // Numbers have 32 bits and a sign, and what goes beyond is cut off.
        let [a, b, c, d, ..] = (tag >> 3).to_le_bytes();
        let field = i32::from_le_bytes([a, b, c, d]);
        match u32::try_from(field) {
            Ok(number) if number > 0 => Ok((number, wire_type)),
            _ => Err(WireError::Tag { message: self.message.to_owned(), field, wire_type }),
        }
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(WireError::Overflow)
    }

    fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = i64::from_le_bytes(self.varint()?.to_le_bytes());
        let length = u64::try_from(length).map_err(|_| WireError::Length)?;
        let (value, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or(WireError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(value)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<&'a [u8; LENGTH], WireError> {
        let (value, rest) = self.rest.split_first_chunk().ok_or(WireError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(value)
    }

    /// Passes over a value whose tag has been read. Groups may be in groups.
    fn skip(&mut self, wire_type: u8) -> Result<(), WireError> {
        let mut wire_type = wire_type;
        let mut groups = 0_usize;
        loop {
            match wire_type {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.array::<8>()?),
                DELIMITED => drop(self.delimited()?),
                START_GROUP if groups == MAX_GROUPS => return Err(WireError::WireType(START_GROUP)),
                START_GROUP => groups += 1,
                END_GROUP => groups = groups.checked_sub(1).ok_or(WireError::UnexpectedEndOfGroup)?,
                FIXED32 => drop(self.array::<4>()?),
                other => return Err(WireError::WireType(other)),
            }
            if groups == 0 {
                return Ok(());
            }
            (_, wire_type) = self.tag()?;
        }
    }
}

pub fn put_varint(output: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            output.push(low & 0x7f);
            return;
        }
        output.push(low | 0x80);
    }
}

pub fn put_tag(output: &mut Vec<u8>, number: u32, wire_type: u8) {
    put_varint(output, u64::from(number) << 3 | u64::from(wire_type));
}

/// What stands before so many bytes.
pub fn put_length(output: &mut Vec<u8>, number: u32, length: usize) {
    put_tag(output, number, DELIMITED);
    put_varint(output, length as u64);
}

pub fn put_bytes(output: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_length(output, number, bytes.len());
    output.extend_from_slice(bytes);
}

pub fn put_number(output: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(output, number, VARINT);
    put_varint(output, u64::from_le_bytes(value.to_le_bytes()));
}

pub fn put_double(output: &mut Vec<u8>, number: u32, value: f64) {
    put_tag(output, number, FIXED64);
    output.extend_from_slice(&value.to_le_bytes());
}

/// A field whose length is known only after `write` has written it.
pub fn put_nested<E>(
    output: &mut Vec<u8>,
    number: u32,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_tag(output, number, DELIMITED);
    let start = output.len();
    write(output)?;
    let mut length = Vec::with_capacity(4);
    put_varint(&mut length, (output.len() - start) as u64);
    output.splice(start..start, length);
    Ok(())
}
