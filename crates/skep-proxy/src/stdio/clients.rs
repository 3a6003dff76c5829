//! What this process holds for each session: its streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderValue;
use parking_lot::Mutex;
use skep_mcp::Revision;

use super::events::{EventStream, parse_event_id};
use super::kept::Kept;
use super::load::Load;
use crate::answer::{self, Answer};
use crate::budget::Budget;
use crate::limits::Limits;
use crate::open_ended::OpenEnded;

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: Arc<str>,
    /// The revision of its messages. It can change while there is no handshake, for a session begins before that with the
    /// stream of HTTP+SSE.
    revision: Mutex<Revision>,
    /// Whether there is a session of this name. Who only listens has none.
    is_session: bool,
    /// For messages that belong to no request.
    background: Arc<EventStream>,
    /// Answers that the client can come back for.
    kept: Arc<Kept>,
    next: AtomicU64,
    load: Arc<Load>,
}

/// The name of the stream for messages that belong to no request.
const BACKGROUND: u64 = 0;

impl Client {
    fn new(id: &Arc<str>, revision: Revision, resumable: bool, is_session: bool, kept: &Budget) -> Arc<Self> {
        Arc::new(Self {
            id: Arc::clone(id),
            revision: Mutex::new(revision),
            is_session,
            background: EventStream::new(BACKGROUND, resumable),
            kept: Kept::new(kept),
            next: AtomicU64::new(BACKGROUND + 1),
            load: Arc::default(),
        })
    }

    /// The revision of its messages.
    pub(crate) fn revision(&self) -> Revision {
        *self.revision.lock()
    }

    /// Settles the revision of its messages.
    pub(super) fn agree_on(&self, revision: Revision) {
        *self.revision.lock() = revision;
    }

    /// What the session has under way.
    pub(crate) fn load(&self) -> &Arc<Load> {
        &self.load
    }

    /// A stream of its own for one request.
    pub(crate) fn stream(&self) -> Arc<EventStream> {
        EventStream::kept_by(&self.kept, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Keeps a stream for a client that loses it.
    pub(crate) fn remember(&self, stream: &Arc<EventStream>) {
        self.kept.add(stream);
    }

    /// The stream of that name.
    fn find(&self, name: u64) -> Option<Arc<EventStream>> {
        if name == BACKGROUND {
            return Some(Arc::clone(&self.background));
        }
        self.kept.find(name)
    }

    /// What follows an event that the client has seen, or the messages that belong to no request.
    pub(crate) fn listen(&self, last: Option<&HeaderValue>) -> Answer {
        let open_ended = |body| OpenEnded::default().mark(answer::events(body));
        let Some(last) = last else { return open_ended(self.background.read(())) };
        let known = last.to_str().ok().and_then(parse_event_id);
        // A client that is refused would ask again for ever; one that finds an empty stream knows that there is no more.
        let body = known.and_then(|(name, number)| self.find(name)?.read_after(number, ())).unwrap_or_default();
        // All others end with the answer that they are for.
        let is_background = known.is_some_and(|(name, _)| name == BACKGROUND);
        if is_background { open_ended(body) } else { answer::events(body) }
    }

    /// The stream for messages that belong to no request.
    pub(crate) fn background(&self) -> &Arc<EventStream> {
        &self.background
    }

    /// Ends its streams.
    pub(crate) fn close(&self) {
        self.background.close();
        self.kept.close();
    }
}

/// The sessions that this process holds streams for.
#[derive(Debug)]
pub(crate) struct Clients {
    all: Mutex<HashMap<Arc<str>, Arc<Client>>>,
    /// For large answers that were read.
    kept: Budget,
}

impl Clients {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { all: Mutex::default(), kept: limits.kept.clone() }
    }

    /// The streams of a session, which are new if there are none.
    pub(crate) fn open(&self, id: &Arc<str>, revision: Revision, resumable: bool) -> Arc<Client> {
        let mut clients = self.all.lock();
        let client =
            clients.entry(Arc::clone(id)).or_insert_with(|| Client::new(id, revision, resumable, true, &self.kept));
        Arc::clone(client)
    }

    /// A stream of background messages for somebody who has no session. Whoever reads it has to close it.
    pub(crate) fn open_listener(&self, id: &Arc<str>) -> Arc<Client> {
        let client = Client::new(id, Revision::NEWEST_WITH_HANDSHAKE, false, false, &self.kept);
        self.all.lock().insert(Arc::clone(id), Arc::clone(&client));
        client
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Client>> {
        self.all.lock().get(id).cloned()
    }

    /// Forgets a session, whose streams are still open.
    pub(crate) fn remove(&self, id: &str) -> Option<Arc<Client>> {
        self.all.lock().remove(id)
    }

    /// Whether somebody reads a stream of this session.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        let clients = self.all.lock();
        let is_read = |client: &Arc<Client>| client.background.is_open() || client.kept.is_open();
        clients.get(id).is_some_and(is_read)
    }

    /// The sessions that have such a stream open.
    pub(crate) fn listening(&self) -> Vec<Arc<str>> {
        let clients = self.all.lock();
        let listening = clients.values().filter(|client| client.is_session && client.background.is_open());
        listening.map(|client| Arc::clone(&client.id)).collect()
    }

    /// Forgets the streams of all sessions that ended so long ago that nobody comes back for them.
    pub(crate) fn forget_ended(&self, now: Instant) {
        for client in self.all.lock().values() {
            client.kept.tidy(now);
        }
    }

    /// Gives up the answers that nobody reads now, for the sake of somebody who does.
    pub(crate) fn lose_left(&self) {
        for client in self.all.lock().values() {
            client.kept.lose_left();
        }
    }

    /// Ends all streams.
    pub(crate) fn close_all(&self) {
        for client in std::mem::take(&mut *self.all.lock()).into_values() {
            client.close();
        }
    }

    /// The sessions that this process holds streams for.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        let clients = self.all.lock();
        clients.values().filter(|client| client.is_session).map(|client| Arc::clone(&client.id)).collect()
    }

    /// The one client, where there is one.
    pub(crate) fn only(&self) -> Option<Arc<Client>> {
        self.all.lock().values().next().cloned()
    }

    /// Tells all clients that listen.
    pub(crate) fn tell_all(&self, message: &[u8]) {
        offer(self.all.lock().values(), message);
    }

    /// Tells some of the clients that listen.
    pub(crate) fn tell(&self, sessions: &[Arc<str>], message: &[u8]) {
        let clients = self.all.lock();
        offer(sessions.iter().filter_map(|id| clients.get(id)), message);
    }
}

/// Tells those who listen, all of them from one copy: what came is a piece of whatever was read with it, and would keep that.
fn offer<'a>(clients: impl Iterator<Item = &'a Arc<Client>>, message: &[u8]) {
    let mut listening = clients.filter(|client| client.background.is_read()).peekable();
    if listening.peek().is_none() {
        return;
    }
    let message = Bytes::copy_from_slice(message);
    for client in listening {
        client.background.offer(message.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_who_listen_are_told() {
        let clients = Clients::new(&Limits::default());
        let [a, b] = ["a", "b"].map(|id| clients.open(&id.into(), Revision::November2025, true));
        let reading = a.background().read(());
        assert_eq!(clients.listening(), [Arc::clone(&a.id)]);
        clients.tell_all(b"{}");
        assert_eq!((a.background().bytes(), b.background().bytes()), (2, 0));
        drop(reading);
        assert!(clients.listening().is_empty());
        clients.remove("a").unwrap().close();
        assert_eq!(clients.ids(), [Arc::<str>::from("b")]);
    }
}
