//! Objects as Kubernetes' protobuf messages, the form in which Go programs send and want built-in kinds.
//!
//! One walk over a table of messages does it for all kinds, in both directions. Our objects stay JSON: what is read here
//! is what the real server would write in JSON after reading the same bytes, members without a value included, and what
//! is written here has the bytes that the real server would write. Custom resources have no messages.

mod decode;
mod encode;
mod envelope;
mod forms;
mod list;
mod messages;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

pub use envelope::{Envelope, decode, encode, encode_json, watch_event};
pub use list::ListMessage;
pub use wire::WireError;

/// Why bytes are not the object they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("empty data")]
    NoData,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoPrefix,
    #[error("empty body")]
    NoBody,
    #[error("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")]
    UnknownKind { api_version: String, kind: String },
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WireType { field: String, wire_type: u8 },
    #[error("the time {0} is out of range")]
    Time(i64),
    #[error("impossible IntOrString.Type")]
    IntOrString,
    #[error(transparent)]
    Json(#[from] crate::decode::DecodeError),
    #[error("the message is nested too deeply")]
    TooDeep,
    #[error("the message stands for far more than its size")]
    TooLarge,
}

/// Why an object cannot be a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    #[error("{kind} in {api_version:?} has no protobuf message")]
    UnknownKind { api_version: String, kind: String },
    #[error("{member} does not have the type of its message: {value}")]
    Type { member: String, value: String },
    #[error("the document cannot be read: {0}")]
    Document(String),
}
