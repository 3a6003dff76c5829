//! The body of a request on its way to a transport: still to be read, or read by somebody before it.

use bytes::Bytes;
use hyper::body::Body as _;
use skep_mcp::{Payload, ReadError};

use crate::answer::Answer;
use crate::intake;
use crate::limits::Limits;
use crate::listener::Coming;

/// What a client sends with a request.
#[derive(Debug)]
pub(crate) enum Upload {
    /// Nobody has read it yet.
    Coming(Coming),
    /// Somebody has.
    Read(Sent),
}

/// A body that has been read.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// All of it, as it came or as somebody on the way has changed it.
    pub(crate) text: Bytes,
    /// What is in it, if somebody has looked.
    pub(crate) payload: Option<Payload>,
}

impl Upload {
    /// Reads it, unless that has been done.
    pub(crate) async fn read(self, limits: &Limits) -> Result<Sent, Answer> {
        match self {
            Self::Coming(body) => Ok(Sent { text: intake::body(body, limits).await?, payload: None }),
            Self::Read(sent) => Ok(sent),
        }
    }

    /// How many bytes it has at least.
    pub(crate) fn least_bytes(&self) -> usize {
        match self {
            Self::Coming(body) => usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX),
            Self::Read(sent) => sent.text.len(),
        }
    }
}

impl Sent {
    /// The message or the messages in it.
    pub(crate) fn payload(self) -> Result<Payload, ReadError> {
        match self.payload {
            Some(payload) => Ok(payload),
            None => Payload::read(self.text),
        }
    }
}
