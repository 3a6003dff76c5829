//! A stream of events with lists in it. All other events pass as they come, byte for byte.

use std::sync::Arc;

use bytes::Bytes;
use skep_mcp::Id;
use skep_mcp::sse::{Event, Frame};

use super::Editor;
use super::message::{self, mentions};
use crate::body::{Body, BodyError};
use crate::middleware::refusal::Refusal;
use crate::passing::{self, Change};

/// What is needed to edit single events.
struct Events {
    editor: Arc<dyn Editor>,
    /// The request that they answer, if it is known.
    id: Option<Id>,
}

/// A stream with its lists edited.
pub(super) fn edit(editor: Arc<dyn Editor>, id: Option<Id>, largest: usize, body: Body) -> Body {
    passing::changed(body, largest, Events { editor, id })
}

impl Change for Events {
    async fn event(&mut self, event: Bytes) -> Bytes {
        self.edited(event).await
    }

    fn part(&mut self, _: Bytes) -> Result<Bytes, BodyError> {
        // What is in it cannot be told.
        Err("an event is too large to be looked at".into())
    }
}

impl Events {
    async fn edited(&self, event: Bytes) -> Bytes {
        // Not all clients agree where lines end, so that all of it counts and not only its data.
        if !self.editor.kinds().iter().any(|kind| mentions(&event, kind.member())) {
            return event;
        }
        let read = Event::read(&event);
        let edited = match read.data.as_deref() {
            Some(data) if !has_bare_return(&event) => {
                let data = Bytes::copy_from_slice(data);
                match message::edit(self.editor.as_ref(), &data).await {
                    Ok(None) if skep_mcp::Payload::read(data).is_ok() => return event,
                    Ok(None) => Err(None),
                    other => other,
                }
            }
            _ => Err(None),
        };
        match edited {
            Ok(edited) => again(&read, read.name, &edited.unwrap_or_default()),
            Err(id) => {
                tracing::warn!("an event that may hold a list cannot be read, and is not shown");
                let refusal = Refusal::UnreadableList.message(id.as_ref().or(self.id.as_ref()));
                again(&read, Some(b"message"), refusal.as_bytes())
            }
        }
    }
}

/// A return that is no part of the end of a line for everybody. The first half of the last line may be cut off.
fn has_bare_return(event: &[u8]) -> bool {
    let mut returns = memchr::memchr_iter(b'\r', event);
    returns.any(|at| at + 1 < event.len() && event[at + 1] != b'\n')
}

/// The event with other data.
fn again(event: &Event<'_>, name: Option<&[u8]>, data: &[u8]) -> Bytes {
    let text = |text: Option<&[u8]>| text.and_then(|text| std::str::from_utf8(text).ok()).map(str::to_owned);
    let (id, name) = (text(event.id), text(name));
    Frame { id: id.as_deref(), retry: event.retry, name: name.as_deref(), data }.encode().into()
}
