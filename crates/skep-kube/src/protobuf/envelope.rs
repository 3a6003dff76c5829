//! What is around the message of an object: four bytes that tell it from JSON, and its version and kind, which the
//! message itself does not have.

use serde_json::Value;

use super::forms::{delimited, text as read_text};
use super::messages::{Message, Messages};
use super::wire::{Reader, put_bytes, put_length, put_nested};
use super::{DecodeError, EncodeError, decode as reading, encode as writing};

const PREFIX: &[u8] = b"k8s\0";

// The fields of the envelope and of the message in it that names the kind.
const TYPE: u32 = 1;
const RAW: u32 = 2;
const CONTENT_ENCODING: u32 = 3;
const CONTENT_TYPE: u32 = 4;
const API_VERSION: u32 = 1;
const KIND: u32 = 2;

/// An object that has not been read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Empty if the sender leaves it to the path of the request, as is `kind`.
    pub api_version: String,
    pub kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Err(DecodeError::NoData);
        }
        let body = bytes.strip_prefix(PREFIX).ok_or(DecodeError::NoPrefix)?;
        if body.is_empty() {
            return Err(DecodeError::NoBody);
        }
        let mut envelope = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        let mut reader = Reader::new(body, "Unknown");
        while let Some((number, value)) = reader.next()? {
            match number {
                TYPE => envelope.read_type(delimited(value, "TypeMeta")?)?,
                RAW => envelope.raw = delimited(value, "Raw")?,
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(bytes, "TypeMeta");
        while let Some((number, value)) = reader.next()? {
            match number {
                API_VERSION => self.api_version = read_text(value, "APIVersion")?,
                KIND => self.kind = read_text(value, "Kind")?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Fills in what the sender left out. A version without a kind, and the other way around, is kept.
    pub fn default_type(&mut self, api_version: &str, kind: &str) {
        if self.api_version.is_empty() {
            api_version.clone_into(&mut self.api_version);
        }
        if self.kind.is_empty() {
            kind.clone_into(&mut self.kind);
        }
    }

    /// The object, as JSON that says what it is.
    pub fn object(&self) -> Result<Value, DecodeError> {
        let message = Messages::get().of_kind(&self.api_version, &self.kind);
        let message = message.ok_or_else(|| DecodeError::UnknownKind {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
        })?;
        let mut object = reading::object(message, self.raw)?;
        object.insert("apiVersion".to_owned(), self.api_version.as_str().into());
        object.insert("kind".to_owned(), self.kind.as_str().into());
        Ok(Value::Object(object))
    }
}

/// The message of an object that says what it is.
pub fn find(object: &Value) -> Result<&'static Message, EncodeError> {
    let text = |member: &str| object[member].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    Messages::get().of_kind(&api_version, &kind).ok_or(EncodeError::UnknownKind { api_version, kind })
}

/// Reads an object that says what it is.
pub fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    Envelope::open(bytes)?.object()
}

/// Writes an object that says what it is.
pub fn encode(object: &Value) -> Result<Vec<u8>, EncodeError> {
    let (mut output, after) = around(object, 0)?;
    output.extend_from_slice(&after);
    Ok(output)
}

/// The same of an object that is a JSON document.
pub fn encode_json(document: &[u8]) -> Result<Vec<u8>, EncodeError> {
    encode(&parse(document)?)
}

pub fn parse(document: &[u8]) -> Result<Value, EncodeError> {
    serde_json::from_slice(document).map_err(|error| EncodeError::Document(error.to_string()))
}

/// What stands before and after members of so many bytes, which are messages already and come after all others.
pub fn around(object: &Value, last: usize) -> Result<(Vec<u8>, Vec<u8>), EncodeError> {
    let message = find(object)?;
    let text = |member: &str| object[member].as_str().unwrap_or_default().as_bytes();
    let mut members = Vec::new();
    writing::object(message, object, &mut members)?;
    let mut before = PREFIX.to_vec();
    put_nested(&mut before, TYPE, |output| {
        put_bytes(output, API_VERSION, text("apiVersion"));
        put_bytes(output, KIND, text("kind"));
        Ok::<(), EncodeError>(())
    })?;
    put_length(&mut before, RAW, members.len() + last);
    before.append(&mut members);
    let mut after = Vec::new();
    put_bytes(&mut after, CONTENT_ENCODING, b"");
    put_bytes(&mut after, CONTENT_TYPE, b"");
    Ok((before, after))
}

/// A frame of a watch: its length in four bytes, then the type of the event and the object in its envelope.
pub fn watch_event(type_: &str, object: &Value) -> Result<Vec<u8>, EncodeError> {
    const EVENT_TYPE: u32 = 1;
    const EVENT_OBJECT: u32 = 2;
    const EXTENSION_RAW: u32 = 1;
    let object = encode(object)?;
    let mut event = Vec::with_capacity(object.len() + 32);
    put_bytes(&mut event, EVENT_TYPE, type_.as_bytes());
    put_nested(&mut event, EVENT_OBJECT, |event| {
        put_bytes(event, EXTENSION_RAW, &object);
        Ok::<(), EncodeError>(())
    })?;
    // Objects are limited to far less than four gibibytes.
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    let mut frame = length.to_be_bytes().to_vec();
    frame.append(&mut event);
    Ok(frame)
}
