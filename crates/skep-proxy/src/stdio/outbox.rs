//! What is on its way to the server, in the order in which it was said.
//!
//! What clients say has so much room and no more, so that they hear when the server does not keep up. What the server need
//! not do any more it has to hear all the same, and nobody waits for that: it has room of its own.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::budget::{Budget, Held};
use crate::limits;

/// Where lines for the server go.
#[derive(Debug)]
pub(super) struct Outbox {
    lines: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
    /// For lines that are large.
    bytes: Budget,
}

/// A line that waits for the server.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) line: Bytes,
    #[expect(dead_code, reason = "it is held")]
    room: Option<OwnedSemaphorePermit>,
    #[expect(dead_code, reason = "it is held")]
    bytes: Held,
}

/// The server does not read fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// Room for one line, which is there for certain.
#[derive(Debug)]
pub(super) struct Room<'a> {
    place: mpsc::Permit<'a, Queued>,
    /// What a client may take of it.
    share: Option<OwnedSemaphorePermit>,
    bytes: Held,
}

impl Room<'_> {
    pub(super) fn send(self, line: Bytes) {
        self.place.send(Queued { line: on_one_line(line), room: self.share, bytes: self.bytes });
    }
}

impl Outbox {
    /// One that has room for so many lines of clients, and whoever takes them out.
    pub(super) fn new(room: usize) -> (Self, mpsc::Receiver<Queued>) {
        let (lines, outgoing) = mpsc::channel(room + limits::QUEUED_FAREWELLS);
        (Self { lines, room: Arc::new(Semaphore::new(room)), bytes: Budget::new(limits::QUEUED_BYTES) }, outgoing)
    }

    /// Sends what a client says.
    pub(super) fn send(&self, line: Bytes) -> Result<(), Full> {
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| Full)?;
        let mut bytes = Held::default();
        // A line that is larger than all may be needs room for itself only.
        self.bytes.grow(&mut bytes, line.len().min(limits::QUEUED_BYTES)).map_err(|_| Full)?;
        self.put(line, Some(room), bytes)
    }

    /// Sends what the server has to hear although clients are told to wait.
    pub(super) fn insist(&self, line: Bytes) -> Result<(), Full> {
        self.put(line, None, Held::default())
    }

    /// Waits until the server has read enough to be told something else.
    pub(super) async fn room(&self) -> Result<Room<'_>, Full> {
        Ok(Room { place: self.lines.reserve().await.map_err(|_| Full)?, share: None, bytes: Held::default() })
    }

    /// Waits until a client may say something of so many bytes, after all who wait already.
    pub(super) async fn turn(&self, bytes: usize) -> Result<Room<'_>, Full> {
        // Those that are large wait for each other before they take a place from those that are not.
        let bytes = self.bytes.wait(bytes.min(limits::QUEUED_BYTES)).await.map_err(|_| Full)?;
        let share = Arc::clone(&self.room).acquire_owned().await.map_err(|_| Full)?;
        Ok(Room { share: Some(share), bytes, ..self.room().await? })
    }

    /// Whether the server was given everything.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.capacity() == self.lines.max_capacity()
    }

    fn put(&self, line: Bytes, room: Option<OwnedSemaphorePermit>, bytes: Held) -> Result<(), Full> {
        self.lines.try_send(Queued { line: on_one_line(line), room, bytes }).map_err(|_| Full)
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
    async fn large_lines_have_so_many_bytes_together_and_small_ones_do_not_wait_for_them() {
        let (outbox, mut outgoing) = Outbox::new(100);
        let large = Bytes::from(vec![b'x'; limits::QUEUED_BYTES / 4]);
        for _ in 0..4 {
            outbox.send(large.clone()).unwrap();
        }
        assert_eq!(outbox.send(large.clone()), Err(Full));
        outbox.send(Bytes::from_static(b"small")).unwrap();
        drop(outgoing.recv().await);
        outbox.send(large.clone()).unwrap();
        while outgoing.try_recv().is_ok() {}
        outbox.send(vec![b'x'; limits::QUEUED_BYTES + 1].into()).unwrap();
        assert_eq!(outbox.send(large), Err(Full));
    }

    #[tokio::test]
    async fn large_lines_wait_for_each_other_and_small_ones_pass_them() {
        let (outbox, mut outgoing) = Outbox::new(2);
        outbox.send(vec![b'x'; limits::QUEUED_BYTES].into()).unwrap();
        let mut large = Box::pin(outbox.turn(2 * limits::QUEUED_BYTES));
        assert!(futures::poll!(&mut large).is_pending());
        outbox.turn(1).await.unwrap().send(Bytes::from_static(b"small"));
        drop(outgoing.recv().await);
        large.await.unwrap().send(Bytes::from_static(b"large"));
        assert_eq!(outgoing.recv().await.unwrap().line, "small");
        assert_eq!(outgoing.recv().await.unwrap().line, "large");
    }

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
