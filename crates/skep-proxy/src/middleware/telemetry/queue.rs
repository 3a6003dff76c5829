//! Spans that wait to be told. There is room for so many of them; what finds none is lost, and counted.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::otlp::wire::Message;

/// So many spans wait to be told, and so many bytes of them.
const WAITING: usize = 2048;
const WAITING_BYTES: usize = 8 << 20;
/// So many are told at once.
const BATCH: usize = 512;
const BATCH_BYTES: usize = 2 << 20;

/// Spans that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    is_enough: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    spans: VecDeque<Message>,
    bytes: usize,
    lost: u64,
}

impl Waiting {
    fn has_room(&self, span: &Message) -> bool {
        self.spans.len() < WAITING && self.bytes + span.len() <= WAITING_BYTES
    }
}

impl Queue {
    /// Leaves a span to be told.
    pub(super) fn push(&self, span: Message) {
        let mut waiting = self.waiting.lock();
        if !waiting.has_room(&span) {
            waiting.lost += 1;
            return;
        }
        waiting.bytes += span.len();
        waiting.spans.push_back(span);
        if waiting.spans.len() >= BATCH {
            self.is_enough.notify_one();
        }
    }

    /// Those to be told next.
    pub(super) fn take(&self) -> Vec<Message> {
        let mut waiting = self.waiting.lock();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some(span) = waiting.spans.pop_front() else { break };
            bytes += span.len();
            batch.push(span);
        }
        waiting.bytes -= bytes;
        batch
    }

    /// Puts those back that could not be told, as far as there is room.
    pub(super) fn put_back(&self, batch: Vec<Message>) {
        let mut waiting = self.waiting.lock();
        for span in batch.into_iter().rev() {
            if waiting.has_room(&span) {
                waiting.bytes += span.len();
                waiting.spans.push_front(span);
            } else {
                waiting.lost += 1;
            }
        }
    }

    /// Waits until there are enough to be told at once.
    pub(super) async fn filled(&self) {
        self.is_enough.notified().await;
    }

    /// How many were lost since this was last asked.
    pub(super) fn lost(&self) -> u64 {
        std::mem::take(&mut self.waiting.lock().lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(bytes: usize) -> Message {
        let mut span = Message::default();
        span.text(5, &"x".repeat(bytes));
        span
    }

    #[test]
    fn the_queue_has_a_largest_size_and_counts_what_is_lost() {
        let queue = Queue::default();
        for _ in 0..WAITING + 10 {
            queue.push(span(1));
        }
        assert_eq!((queue.lost(), queue.lost()), (10, 0));
        let batch = queue.take();
        assert_eq!(batch.len(), BATCH);
        for _ in 0..BATCH - 2 {
            queue.push(span(1));
        }
        queue.put_back(batch);
        assert_eq!((queue.lost(), queue.waiting.lock().spans.len()), (BATCH as u64 - 2, WAITING));
        while !queue.take().is_empty() {}
        assert_eq!(queue.waiting.lock().bytes, 0);
        for _ in 0..10 {
            queue.push(span(1 << 20));
        }
        assert_eq!((queue.lost(), queue.take().len()), (3, 2), "bytes count, too");
    }
}
