//! The events of one stream that are still held.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;

use super::End;
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Log {
    /// Whether a reader may come back for what was given to it.
    is_resumable: bool,
    pub(super) events: VecDeque<Event>,
    pub(super) bytes: usize,
    pub(super) next: u64,
    /// Events before this one have been given to a reader.
    pub(super) delivered: u64,
    /// The reader that may read.
    pub(super) reader: u64,
    /// Whether that one is there.
    pub(super) is_open: bool,
    pub(super) end: Option<(End, Instant)>,
}

#[derive(Debug)]
pub(super) struct Event {
    pub(super) number: u64,
    /// A message, or nothing for an event that only has an id.
    pub(super) data: Bytes,
}

impl Log {
    /// One without events.
    pub(super) fn new(is_resumable: bool) -> Self {
        Self { is_resumable, ..Self::default() }
    }

    pub(super) fn push(&mut self, data: Bytes) {
        self.bytes += data.len();
        self.events.push_back(Event { number: self.next, data });
        self.next += 1;
        self.trim();
    }

    /// Forgets the oldest events that a reader was given, and all of them if nobody comes back for them.
    pub(super) fn trim(&mut self) {
        while (!self.is_resumable
            || self.events.len() > limits::EVENTS_PER_STREAM
            || self.bytes > limits::EVENT_BYTES_PER_STREAM)
            && self.events.front().is_some_and(|event| event.number < self.delivered)
        {
            if let Some(event) = self.events.pop_front() {
                self.bytes -= event.data.len();
            }
        }
    }

    /// Keeps a copy of an event that a reader was given, or forgets it and those before it where there is none.
    pub(super) fn keep(&mut self, index: usize, copy: Option<Bytes>) {
        if let Some(copy) = copy {
            if let Some(event) = self.events.get_mut(index) {
                event.data = copy;
            }
            return;
        }
        for event in self.events.drain(..=index.min(self.events.len().saturating_sub(1))) {
            self.bytes -= event.data.len();
        }
    }

    /// Whether another event may wait for the reader.
    pub(super) fn has_room(&self) -> bool {
        let waiting = self.next.saturating_sub(self.delivered);
        waiting == 0
            || usize::try_from(waiting).is_ok_and(|waiting| waiting < limits::EVENTS_PER_STREAM)
                && self.bytes < limits::EVENT_BYTES_PER_STREAM
    }

    /// Whether somebody has begun to read it, and nobody reads it now.
    pub(super) fn is_left(&self) -> bool {
        self.reader > 0 && !self.is_open
    }

    /// The bytes that no reader was given yet.
    pub(super) fn unread(&self) -> usize {
        let unread = self.events.iter().rev().take_while(|event| event.number >= self.delivered);
        unread.map(|event| event.data.len()).sum()
    }

    /// Replaces the last event.
    pub(super) fn replace_last(&mut self, data: Bytes) {
        if let Some(event) = self.events.back_mut() {
            self.bytes = self.bytes - event.data.len() + data.len();
            event.data = data;
        }
    }
}
