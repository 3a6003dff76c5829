//! What a server answers to a handshake: read as far as the answer goes, and no further.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::{BodyExt as _, Limited};
use skep_mcp::sse::{Event, Piece, Splitter};
use skep_mcp::{Kind, Message};

use super::bridged::HANDSHAKE_BYTES;
use super::upstream::FromServer;
use crate::answer::{self, Answer};
use crate::body::Body;
use crate::eras::http::is_stream;
use crate::passing;

/// An answer, and where it came from.
#[derive(Debug)]
pub(super) struct Opening {
    /// The answer, if it is a message.
    pub(super) message: Option<Message>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Whole(Bytes),
    Events {
        before: BytesMut,
        /// The event that the answer is in.
        event: Bytes,
        after: Bytes,
        rest: FromServer,
    },
}

impl Opening {
    /// Reads the body of a response to a handshake.
    pub(super) async fn read(headers: &HeaderMap, body: FromServer, handshake: &Message) -> Result<Self, Answer> {
        let broken = || answer::broken_off(handshake.owned_id().as_ref());
        if is_stream(headers) {
            return Self::read_events(body).await.ok_or_else(broken);
        }
        let body = Limited::new(body, HANDSHAKE_BYTES).collect().await.map_err(|_| broken())?.to_bytes();
        Ok(Self { message: Message::read(body.clone()).ok(), form: Form::Whole(body) })
    }

    /// Reads events until the answer. Where there is none, all of it passes as it is.
    async fn read_events(mut rest: FromServer) -> Option<Self> {
        let mut splitter = Splitter::new(HANDSHAKE_BYTES);
        let mut before = BytesMut::new();
        loop {
            let Some(frame) = rest.frame().await else {
                before.extend_from_slice(&splitter.finish().unwrap_or_default());
                return Some(Self { message: None, form: Form::Whole(before.freeze()) });
            };
            splitter.push(frame.ok()?.data_ref().unwrap_or(&Bytes::new()));
            while let Some(piece) = splitter.next_piece() {
                let (event, message) = match piece {
                    Piece::Event(event) => (event.clone(), answer_in(&event)),
                    Piece::Part(part) => (part, None),
                };
                if message.is_some() || before.len() + event.len() > HANDSHAKE_BYTES {
                    let after = splitter.finish().unwrap_or_default();
                    return Some(Self { message, form: Form::Events { before, event, after, rest } });
                }
                before.extend_from_slice(&event);
            }
        }
    }

    /// The body as it was, with another answer in its place if there is one.
    pub(super) fn body(self, other: Option<String>) -> Body {
        match self.form {
            Form::Whole(text) => Body::Full(other.map_or(text, Bytes::from)),
            Form::Events { mut before, event, after, rest } => {
                let event = other.map_or(event.clone(), |other| passing::with_data(&event, other.as_bytes()));
                before.extend_from_slice(&event);
                before.extend_from_slice(&after);
                Body::FromServer(rest).after(before.freeze())
            }
        }
    }
}

/// The answer that an event carries.
fn answer_in(event: &[u8]) -> Option<Message> {
    let read = Event::read(event);
    let data = read.data.as_deref().filter(|_| read.is_message())?;
    Message::read(Bytes::copy_from_slice(data)).ok().filter(|message| message.kind() == Kind::Response)
}
