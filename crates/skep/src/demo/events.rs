//! Streams of server-sent events that a client may lose and resume.
//!
//! A stream belongs to its session and not to a connection. It numbers its events, keeps the last ones, and has at
//! most one reader: a new one takes over from the one before.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::Stream;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::limits;

/// A stream of one session.
#[derive(Debug)]
pub(crate) struct EventStream {
    name: u64,
    log: Mutex<Log>,
    /// Woken by every change of the log.
    changed: watch::Sender<()>,
    /// Ends the stream, whatever is left in it.
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<Event>,
    bytes: usize,
    next: u64,
    /// Events before this one have been given to a reader.
    delivered: u64,
    /// The reader that may read.
    reader: u64,
    finished: Option<Instant>,
}

#[derive(Debug)]
struct Event {
    number: u64,
    data: String,
    retry: Option<Duration>,
}

impl Log {
    fn push(&mut self, data: String, retry: Option<Duration>) {
        self.bytes += data.len();
        self.events.push_back(Event { number: self.next, data, retry });
        self.next += 1;
        self.trim();
    }

    /// Forgets the oldest events that a reader was given.
    fn trim(&mut self) {
        while (self.events.len() > limits::EVENTS_PER_STREAM || self.bytes > limits::EVENT_BYTES_PER_STREAM)
            && self.events.front().is_some_and(|event| event.number < self.delivered)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= event.data.len();
        }
    }

    /// Whether another event may wait for the reader.
    fn has_room(&self) -> bool {
        let waiting = self.next.saturating_sub(self.delivered);
        waiting == 0
            || usize::try_from(waiting).is_ok_and(|waiting| waiting < limits::EVENTS_PER_STREAM)
                && self.bytes < limits::EVENT_BYTES_PER_STREAM
    }
}

impl EventStream {
    /// An empty stream that ends with `ended` at the latest.
    pub(crate) fn new(name: u64, ended: CancellationToken) -> Self {
        Self { name, log: Mutex::default(), changed: watch::Sender::new(()), ended }
    }

    /// An event without data, which gives the client an id to come back with.
    pub(crate) fn prime(&self) {
        self.push(String::new(), None);
    }

    pub(crate) async fn send(&self, message: &Value) {
        let mut changed = self.changed.subscribe();
        while !self.log.lock().has_room() {
            tokio::select! {
                _ = changed.changed() => {}
                () = self.ended.cancelled() => return,
            }
        }
        self.push(message.to_string(), None);
    }

    /// Sends a message now; when too many wait, the oldest of them is lost.
    pub(crate) fn offer(&self, message: &Value) {
        let mut log = self.log.lock();
        if !log.has_room() {
            log.drop_oldest();
        }
        drop(log);
        self.push(message.to_string(), None);
    }

    /// Sends the reader away, to come back after `retry`.
    pub(crate) fn hang_up(&self, retry: Duration) {
        self.push(String::new(), Some(retry));
    }

    /// Nothing will follow.
    pub(crate) fn finish(&self) {
        self.log.lock().finished = Some(Instant::now());
        self.changed.send_replace(());
    }

    /// When the last event was sent.
    pub(crate) fn finished(&self) -> Option<Instant> {
        self.log.lock().finished
    }

    /// The memory that its events take.
    pub(crate) fn bytes(&self) -> usize {
        self.log.lock().bytes
    }

    fn push(&self, data: String, retry: Option<Duration>) {
        self.log.lock().push(data, retry);
        self.changed.send_replace(());
    }

    /// Reads what no reader was given yet, and what follows.
    pub(crate) fn read(self: &Arc<Self>) -> impl Stream<Item = String> + Send + use<> {
        let next = self.log.lock().delivered;
        self.read_from(next)
    }

    /// Reads what follows the event of that number, or nothing when that is no longer known.
    pub(crate) fn read_after(self: &Arc<Self>, number: u64) -> Option<impl Stream<Item = String> + Send + use<>> {
        let log = self.log.lock();
        let oldest = log.events.front().map_or(log.next, |event| event.number);
        let is_known = (oldest..=log.next).contains(&(number + 1));
        drop(log);
        is_known.then(|| self.read_from(number + 1))
    }

    fn read_from(self: &Arc<Self>, next: u64) -> impl Stream<Item = String> + Send + use<> {
        let mut log = self.log.lock();
        log.reader += 1;
        let reader = Reader { stream: Arc::clone(self), changed: self.changed.subscribe(), number: log.reader, next };
        drop(log);
        self.changed.send_replace(());
        futures::stream::unfold(reader, async |mut reader| Some((reader.next().await?, reader)))
    }

    fn render(&self, event: &Event) -> String {
        let mut text = format!("id: {}-{}\n", self.name, event.number);
        if let Some(retry) = event.retry {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "retry: {}", retry.as_millis());
        }
        if !event.data.is_empty() {
            text.push_str("event: message\n");
        }
        let _ = write!(text, "data: {}\n\n", event.data);
        text
    }
}

/// The stream and the number that an event id names.
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok().filter(|number| *number < u64::MAX)?))
}

struct Reader {
    stream: Arc<EventStream>,
    changed: watch::Receiver<()>,
    number: u64,
    /// The event to read next; `u64::MAX` when the stream is over for this reader.
    next: u64,
}

impl Reader {
    async fn next(&mut self) -> Option<String> {
        loop {
            self.changed.mark_unchanged();
            if let Some(text) = self.look()? {
                return Some(text);
            }
            tokio::select! {
                _ = self.changed.changed() => {}
                () = self.stream.ended.cancelled() => return None,
                () = tokio::time::sleep(limits::KEEP_ALIVE) => return Some(": alive\n\n".to_owned()),
            }
        }
    }

    /// The next event if there is one already; nothing at all when there will be none.
    #[expect(clippy::option_option, reason = "over, not yet, and now are three answers")]
    fn look(&mut self) -> Option<Option<String>> {
        let mut log = self.stream.log.lock();
        if log.reader != self.number {
            return None;
        }
        let Some(event) = log.events.iter().find(|event| event.number >= self.next) else {
            return if log.finished.is_some() || self.next == u64::MAX { None } else { Some(None) };
        };
        let text = self.stream.render(event);
        let after = event.number + 1;
        self.next = if event.retry.is_some() { u64::MAX } else { after };
        log.delivered = log.delivered.max(after);
        log.trim();
        drop(log);
        self.stream.changed.send_replace(());
        Some(Some(text))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use serde_json::json;

    use super::*;

    fn stream() -> Arc<EventStream> {
        Arc::new(EventStream::new(3, CancellationToken::new()))
    }

    #[tokio::test]
    async fn a_reader_that_comes_back_gets_what_it_missed() {
        let stream = stream();
        stream.prime();
        stream.send(&json!(1)).await;
        stream.send(&json!(2)).await;
        stream.finish();
        let all: Vec<String> = stream.read().collect().await;
        assert_eq!(
            all,
            ["id: 3-0\ndata: \n\n", "id: 3-1\nevent: message\ndata: 1\n\n", "id: 3-2\nevent: message\ndata: 2\n\n"]
        );
        let missed: Vec<String> = stream.read_after(1).unwrap().collect().await;
        assert_eq!(missed, ["id: 3-2\nevent: message\ndata: 2\n\n"]);
        assert!(stream.read_after(17).is_none());
    }

    #[tokio::test]
    async fn a_hang_up_ends_the_reader_and_not_the_stream() {
        let stream = stream();
        stream.hang_up(Duration::from_millis(500));
        stream.send(&json!(1)).await;
        stream.finish();
        let first: Vec<String> = stream.read().collect().await;
        assert_eq!(first, ["id: 3-0\nretry: 500\ndata: \n\n"]);
        let second: Vec<String> = stream.read_after(0).unwrap().collect().await;
        assert_eq!(second, ["id: 3-1\nevent: message\ndata: 1\n\n"]);
    }

    #[tokio::test]
    async fn a_new_reader_takes_over() {
        let stream = stream();
        let mut first = Box::pin(stream.read());
        let mut second = Box::pin(stream.read());
        stream.send(&json!(1)).await;
        assert_eq!(first.next().await, None);
        assert!(second.next().await.unwrap().contains("data: 1"));
    }

    #[tokio::test]
    async fn memory_is_bounded_with_and_without_a_reader() {
        let stream = stream();
        for number in 0..10 * limits::EVENTS_PER_STREAM {
            stream.offer(&json!(number));
        }
        assert_eq!(stream.log.lock().events.len(), limits::EVENTS_PER_STREAM);
        let blocked = tokio::time::timeout(Duration::from_millis(20), stream.send(&json!("waits"))).await;
        assert!(blocked.is_err());
        let mut reader = Box::pin(stream.read());
        for _ in 0..10 {
            reader.next().await.unwrap();
        }
        stream.send(&json!("has room")).await;
        assert!(stream.log.lock().events.len() <= limits::EVENTS_PER_STREAM);
    }
}
