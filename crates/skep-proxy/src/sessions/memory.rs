//! Sessions in the memory of this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Metadata, Session};

/// The sessions of one proxy. The one that was idle the longest ends when there are too many.
#[derive(Debug)]
pub(super) struct Memory {
    entries: Mutex<HashMap<Arc<str>, Entry>>,
    lifetime: Duration,
    most: usize,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    used: Instant,
}

impl Memory {
    /// A store for so many sessions that live so long without being used.
    pub(super) fn new(lifetime: Duration, most: usize) -> Self {
        Self { entries: Mutex::default(), lifetime, most: most.max(1) }
    }

    /// Adds a session, unless there is one with that id. When another one had to end for it, that is named.
    pub(super) fn create(&self, session: Session) -> Option<Arc<str>> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        if entries.get(&session.id).is_some_and(|entry| self.is_alive(entry, now)) {
            return None;
        }
        let is_full = entries.len() >= self.most && !entries.contains_key(&session.id);
        let ended = is_full.then(|| entries.iter().min_by_key(|(_, entry)| entry.used).map(|(id, _)| Arc::clone(id)));
        let ended = ended.flatten().inspect(|id| drop(entries.remove(id)));
        entries.insert(Arc::clone(&session.id), Entry { session: Arc::new(session), used: now });
        ended
    }

    /// The session with that id, which counts as used now.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        let entry = entries.get_mut(id).filter(|entry| self.is_alive(entry, now))?;
        entry.used = now;
        Some(Arc::clone(&entry.session))
    }

    /// Whether there is such a session. Asking does not count as use.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.entries.lock().get(id).is_some_and(|entry| self.is_alive(entry, Instant::now()))
    }

    /// Changes what belongs to a session, if it is there.
    pub(super) fn update(&self, id: &str, change: impl FnOnce(&mut Metadata)) {
        if let Some(entry) = self.entries.lock().get_mut(id) {
            change(&mut Arc::make_mut(&mut entry.session).metadata);
        }
    }

    /// Ends a session, and tells whether it was there.
    pub(super) fn delete(&self, id: &str) -> bool {
        let entry = self.entries.lock().remove(id);
        entry.is_some_and(|entry| self.is_alive(&entry, Instant::now()))
    }

    /// Forgets the sessions that have ended.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.entries.lock().retain(|_, entry| self.is_alive(entry, now));
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.lock().len()
    }

    fn is_alive(&self, entry: &Entry, now: Instant) -> bool {
        now.duration_since(entry.used) < self.lifetime
    }
}

#[cfg(test)]
mod tests {
    use skep_mcp::Revision;

    use super::*;
    use crate::sessions::Kind;

    fn session(id: &str) -> Session {
        Session::new(id, Kind::Streamable, Revision::November2025, None)
    }

    #[test]
    fn a_session_is_there_once_and_until_it_ends() {
        let sessions = Memory::new(Duration::from_mins(1), 10);
        assert_eq!(sessions.create(session("a")), None);
        let there = sessions.get("a").unwrap();
        sessions.create(session("a"));
        assert!(Arc::ptr_eq(&sessions.get("a").unwrap(), &there), "it is the one that was there");
        drop(there);
        assert_eq!(sessions.get("a").unwrap().revision(), Revision::November2025);
        sessions.update("a", Metadata::clear);
        assert_eq!(sessions.get("a").unwrap().revision(), Revision::ASSUMED);
        assert!(sessions.delete("a") && !sessions.delete("a") && sessions.get("a").is_none());
    }

    #[test]
    fn idle_sessions_end_and_the_number_is_bounded() {
        let sessions = Memory::new(Duration::ZERO, 10);
        sessions.create(session("a"));
        assert!(sessions.get("a").is_none() && !sessions.contains("a"));
        sessions.sweep();
        assert_eq!(sessions.len(), 0);
        let sessions = Memory::new(Duration::from_mins(1), 3);
        for id in ["a", "b", "c"] {
            sessions.create(session(id));
        }
        sessions.get("a");
        assert_eq!(sessions.create(session("d")).as_deref(), Some("b"));
        assert_eq!(sessions.len(), 3);
        assert!(!sessions.contains("b") && sessions.contains("a"));
    }
}
