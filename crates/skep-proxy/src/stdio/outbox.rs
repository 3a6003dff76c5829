//! What is on its way to the server, in the order in which it was said.
//!
//! What clients say has so much room and no more, so that they hear when the server does not keep up. What the server need
//! not do any more it has to hear all the same, and nobody waits for that: it has room of its own.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::limits;

/// Where lines for the server go.
#[derive(Debug)]
pub(super) struct Outbox {
    lines: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
}

/// A line that waits for the server.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) line: Bytes,
    #[expect(dead_code, reason = "it is held")]
    room: Option<OwnedSemaphorePermit>,
}

/// The server does not read fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// Room for one line, which is there for certain.
#[derive(Debug)]
pub(super) struct Room<'a> {
    place: mpsc::Permit<'a, Queued>,
    room: Option<OwnedSemaphorePermit>,
}

impl Room<'_> {
    pub(super) fn send(self, line: Bytes) {
        self.place.send(Queued { line: on_one_line(line), room: self.room });
    }
}

impl Outbox {
    /// One that has room for so many lines of clients, and whoever takes them out.
    pub(super) fn new(room: usize) -> (Self, mpsc::Receiver<Queued>) {
        let (lines, outgoing) = mpsc::channel(room + limits::QUEUED_FAREWELLS);
        (Self { lines, room: Arc::new(Semaphore::new(room)) }, outgoing)
    }

    /// Sends what a client says.
    pub(super) fn send(&self, line: Bytes) -> Result<(), Full> {
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| Full)?;
        self.put(line, Some(room))
    }

    /// Sends what the server has to hear although clients are told to wait.
    pub(super) fn insist(&self, line: Bytes) -> Result<(), Full> {
        self.put(line, None)
    }

    /// Waits until the server has read enough to be told something else.
    pub(super) async fn room(&self) -> Result<Room<'_>, Full> {
        Ok(Room { place: self.lines.reserve().await.map_err(|_| Full)?, room: None })
    }

    /// Waits until a client may say something, after all who wait already.
    pub(super) async fn turn(&self) -> Result<Room<'_>, Full> {
        let room = Arc::clone(&self.room).acquire_owned().await.map_err(|_| Full)?;
        Ok(Room { room: Some(room), ..self.room().await? })
    }

    /// Whether the server was given everything.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.capacity() == self.lines.max_capacity()
    }

    fn put(&self, line: Bytes, room: Option<OwnedSemaphorePermit>) -> Result<(), Full> {
        self.lines.try_send(Queued { line: on_one_line(line), room }).map_err(|_| Full)
    }
}

/// A message is a line, so that it may not have any within it. In JSON they are never more than space.
fn on_one_line(line: Bytes) -> Bytes {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if line.iter().any(is_end) {
        return line.iter().map(|byte| if is_end(byte) { b' ' } else { *byte }).collect();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_must_be_heard_has_room_beyond_that_of_clients_and_waits_in_its_turn() {
        let (outbox, mut outgoing) = Outbox::new(1);
        let line = |text: &'static str| Bytes::from_static(text.as_bytes());
        outbox.send(line("first")).unwrap();
        assert_eq!(outbox.send(line("refused")), Err(Full));
        for _ in 0..limits::QUEUED_FAREWELLS {
            outbox.insist(line("farewell")).unwrap();
        }
        assert_eq!(outbox.insist(line("too much")), Err(Full));
        let ((), mut read) = tokio::join!(async { outbox.room().await.unwrap().send(line("last")) }, async {
            vec![outgoing.recv().await.unwrap().line]
        });
        outbox.send(line("again")).unwrap_err();
        while let Ok(queued) = outgoing.try_recv() {
            read.push(queued.line);
        }
        assert_eq!((&read[0], read.len()), (&line("first"), limits::QUEUED_FAREWELLS + 2));
        assert_eq!(read.last(), Some(&line("last")));
        assert!(outbox.is_empty());
        outbox.send(line("again")).unwrap();
    }
}
