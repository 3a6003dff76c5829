//! The streams of one session that its client can come back for.
//!
//! Those that were read to their end are kept in case that something got lost on its way, as many as there is room for. Those
//! that nobody has read to their end have answers that nobody has got yet: they do not make room for the others, and have
//! a bound of their own.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::Mutex;

use super::events::{EventStream, Held};
use crate::budget::{Budget, SMALL};
use crate::limits;

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct Kept {
    streams: Mutex<Vec<Arc<EventStream>>>,
    /// For what was read, if it is large. All sessions share it.
    room: Budget,
}

impl Kept {
    pub(super) fn new(room: &Budget) -> Arc<Self> {
        Arc::new(Self { streams: Mutex::default(), room: room.clone() })
    }

    /// What is kept of a message that is given to a reader. That one has the room of those that nobody has read yet, which is
    /// for others then.
    pub(super) fn copy(&self, message: &Bytes) -> Option<Bytes> {
        self.room.copy(message)
    }

    /// Gives up the answers that nobody reads now, for the sake of somebody who does.
    pub(super) fn lose_left(&self) {
        // What was read, or is small, takes no room from others.
        let takes_room = |held: Held| held.is_left && held.unread > SMALL;
        for stream in self.streams.lock().iter().filter(|stream| takes_room(stream.held())) {
            stream.lose_answer();
        }
    }

    /// Keeps a stream from now on.
    pub(super) fn add(&self, stream: &Arc<EventStream>) {
        self.streams.lock().push(Arc::clone(stream));
        self.tidy(Instant::now());
    }

    /// The stream of that name.
    pub(super) fn find(&self, name: u64) -> Option<Arc<EventStream>> {
        self.streams.lock().iter().find(|stream| stream.name() == name).cloned()
    }

    /// Whether somebody reads one of them now.
    pub(super) fn is_open(&self) -> bool {
        self.streams.lock().iter().any(|stream| stream.is_open())
    }

    /// Whether more may be written to a stream that its client has left.
    pub(super) fn has_room(&self) -> bool {
        let left = |held: Held| if held.is_left { held.unread } else { 0 };
        let unread: usize = self.streams.lock().iter().map(|stream| left(stream.held())).sum();
        unread < limits::UNREAD_ANSWER_BYTES
    }

    /// Lets go of what nobody comes back for, and of what there is no room for. To be done whenever a stream ends, or its
    /// reader goes.
    pub(super) fn tidy(&self, now: Instant) {
        let mut streams = self.streams.lock();
        let is_kept = |ended: Instant| now.saturating_duration_since(ended) < limits::RESUMABLE;
        streams.retain(|stream| stream.held().ended.is_none_or(is_kept));
        let is_read = |held: &Held| held.is_read;
        let_go(&mut streams, is_read, limits::STREAMS_PER_SESSION, limits::EVENT_BYTES_PER_STREAM);
        // What these hold is bounded below.
        let_go(&mut streams, |held| !held.is_read, limits::CALLS_PER_SESSION, usize::MAX);
        lose_answers(&streams);
    }

    /// Ends all of them.
    pub(super) fn close(&self) {
        // A stream that ends comes back here.
        let streams = std::mem::take(&mut *self.streams.lock());
        for stream in streams {
            stream.close();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.streams.lock().len()
    }
}

/// Lets go of those that ended first, among some that are too many or too large together.
fn let_go(streams: &mut Vec<Arc<EventStream>>, is_meant: impl Fn(&Held) -> bool, most: usize, most_bytes: usize) {
    let ended = streams.iter().filter_map(|stream| {
        let held = stream.held();
        Some((held.ended.filter(|_| is_meant(&held))?, stream.name(), held.bytes))
    });
    let mut ended: Vec<_> = ended.collect();
    ended.sort_unstable();
    let (mut count, mut bytes) = (ended.len(), ended.iter().map(|(_, _, bytes)| bytes).sum::<usize>());
    for (_, name, size) in ended {
        if count <= most && bytes <= most_bytes {
            return;
        }
        streams.retain(|stream| stream.name() != name);
        count -= 1;
        bytes -= size;
    }
}

/// Replaces the answers that came last, where a client has left more than there is room for.
fn lose_answers(streams: &[Arc<EventStream>]) {
    let left = streams.iter().map(|stream| (stream.held(), stream)).filter(|(held, _)| held.is_left && held.unread > 0);
    let mut left: Vec<_> = left.collect();
    // Those that go on come first: what they hold is no answer.
    left.sort_by_key(|(held, _)| held.ended);
    let mut bytes = 0;
    for (held, stream) in left {
        let is_lost = held.ended.is_some() && bytes >= limits::UNREAD_ANSWER_BYTES;
        bytes += if is_lost { stream.lose_answer() } else { held.unread };
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::stdio::events::End;

    fn stream(kept: &Arc<Kept>, name: u64) -> Arc<EventStream> {
        let stream = EventStream::kept_by(kept, name);
        kept.add(&stream);
        stream
    }

    fn answer(bytes: usize) -> Bytes {
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{}"}}"#, "x".repeat(bytes)).into()
    }

    #[tokio::test]
    async fn what_was_read_is_kept_for_a_while_and_what_was_not_for_longer() {
        let kept = Kept::new(&Budget::new(limits::EVENT_BYTES_PER_STREAM * 4));
        let unread = stream(&kept, 1);
        drop(unread.read(()));
        unread.end(Some(answer(1)), End::Answered);
        for name in 2..1000 {
            let stream = stream(&kept, name);
            stream.end(Some(answer(1)), End::Answered);
            stream.read(()).collect().await.unwrap();
        }
        assert_eq!(kept.len(), limits::STREAMS_PER_SESSION + 1);
        assert!(kept.find(1).is_some() && kept.find(2).is_none() && kept.find(999).is_some());
        for name in 1000..1010 {
            let stream = stream(&kept, name);
            stream.end(Some(answer(limits::EVENT_BYTES_PER_STREAM / 2 - 100)), End::Answered);
            stream.read(()).collect().await.unwrap();
        }
        assert!(kept.len() == 3 && kept.find(1).is_some(), "those are large");
        // Not even those that nobody reads are kept without end.
        for name in 2000..3000 {
            let stream = stream(&kept, name);
            drop(stream.read(()));
            stream.end(Some(answer(1)), End::Answered);
        }
        assert_eq!(kept.len(), limits::CALLS_PER_SESSION + 2);
        kept.tidy(Instant::now() + limits::RESUMABLE);
        assert_eq!(kept.len(), 0);
    }

    #[tokio::test]
    async fn a_client_that_goes_when_the_answers_are_there_leaves_no_more_than_one_that_went_before() {
        let kept = Kept::new(&Budget::new(limits::EVENT_BYTES_PER_STREAM * 4));
        let read = stream(&kept, 5);
        let readers: Vec<_> = (0..2).map(|_| read.read(())).collect();
        read.end(Some(answer(limits::EVENT_BYTES_PER_STREAM / 2)), End::Answered);
        for reader in readers {
            reader.collect().await.unwrap();
        }
        let streams: Vec<_> = (1..=4).map(|name| stream(&kept, name)).collect();
        let readers: Vec<_> = streams.iter().map(|stream| stream.read(())).collect();
        for stream in &streams {
            stream.end(Some(answer(limits::UNREAD_ANSWER_BYTES)), End::Answered);
        }
        assert!(streams.iter().all(|stream| stream.bytes() > limits::UNREAD_ANSWER_BYTES), "somebody reads them");
        drop(readers);
        let large = streams.iter().filter(|stream| stream.bytes() > limits::UNREAD_ANSWER_BYTES).count();
        assert_eq!(large, 1);
        assert!(read.bytes() > limits::EVENT_BYTES_PER_STREAM / 2, "what was read need not be lost");
        for stream in streams.iter().filter(|stream| stream.bytes() < limits::UNREAD_ANSWER_BYTES) {
            let told = stream.outcome().await.1;
            assert!(told.starts_with(br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603"#), "{told:?}");
        }
    }

    #[tokio::test]
    async fn what_was_read_is_kept_as_far_as_there_is_room_and_takes_none_from_others() {
        let (all, some) = (Budget::new(2 << 20), Budget::new(1 << 20));
        let kept = Kept::new(&some);
        for name in 1..=10 {
            let stream = stream(&kept, name);
            let first = stream.read(());
            stream.end(Some(all.copy(&answer(512 << 10)).unwrap()), End::Answered);
            first.collect().await.unwrap();
            assert!(all.has_room(2 << 20), "it was read");
        }
        let holds = |name: &u64| kept.find(*name).is_some_and(|stream| stream.bytes() > 0);
        assert_eq!((1..=10).filter(holds).collect::<Vec<_>>(), [1]);
        kept.lose_left();
        assert_eq!((1..=10).filter(holds).collect::<Vec<_>>(), [1], "what was read takes no room from others");
    }

    #[test]
    fn what_comes_before_the_answers_that_nobody_reads_is_bounded() {
        let kept = Kept::new(&Budget::new(limits::EVENT_BYTES_PER_STREAM * 4));
        let streams: Vec<_> = (1..=64).map(|name| stream(&kept, name)).collect();
        for stream in &streams {
            drop(stream.read(()));
            for _ in 0..10 {
                stream.offer(Bytes::from(vec![b'x'; limits::EVENT_BYTES_PER_STREAM / 4]));
            }
        }
        let bytes: usize = streams.iter().map(|stream| stream.bytes()).sum();
        assert!(bytes <= limits::UNREAD_ANSWER_BYTES + limits::EVENT_BYTES_PER_STREAM, "{bytes}");
        let _reader = streams[63].read(());
        assert!(streams[63].has_room(), "somebody reads it");
    }
}
