//! A stream of events with lists in it. All other events pass as they come, byte for byte.

use bytes::Bytes;
use skep_mcp::sse::{Event, Frame};

use super::Editing;
use super::message::{self, RESULT, is_wide, mentions};
use crate::body::{Body, BodyError};
use crate::middleware::refusal::Refusal;
use crate::passing::{self, Change};

/// A stream with its lists edited.
pub(super) fn edit(editing: Editing, body: Body) -> Body {
    let allowance = editing.allowance.clone();
    passing::changed(body, &allowance, editing)
}

impl Change for Editing {
    async fn event(&mut self, event: Bytes) -> Bytes {
        self.edited(event).await
    }

    fn part(&mut self, _: Bytes) -> Result<Bytes, BodyError> {
        // What is in it cannot be told.
        Err("an event is too large to be looked at".into())
    }
}

impl Editing {
    async fn edited(&self, event: Bytes) -> Bytes {
        // Not all clients agree where lines end, so that all of it counts and not only its data.
        let may_list = self.editor.kinds().iter().any(|kind| mentions(&event, kind.member()));
        let may_answer =
            || self.asked.has_lists() && (mentions(&event, RESULT) || is_wide(&event) || !is_clear(&event));
        if !may_list && !may_answer() {
            return event;
        }
        let read = Event::read(&event);
        let edited = match read.data.as_deref() {
            Some(data) if !has_bare_return(&event) => {
                let data = Bytes::copy_from_slice(data);
                match message::edit(self.editor.as_ref(), &self.asked, &data).await {
                    Ok(None) if message::is_clear(&data) => return event,
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

/// Whether an event says nothing, or a message.
fn is_clear(event: &[u8]) -> bool {
    Event::read(event).data.is_none_or(|data| data.trim_ascii().is_empty() || message::is_clear(&data))
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
