//! Sessions in the memory of this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::{Lifetimes, Metadata, Session, Whose};

/// The sessions of one proxy. When there are too many, one ends that was idle the longest: among those of the same client if
/// that has too many itself, and else among those of the client that has most.
#[derive(Debug)]
pub(super) struct Memory {
    entries: Mutex<Entries>,
    lifetimes: Lifetimes,
    most: usize,
    /// The same of one client.
    most_each: usize,
}

#[derive(Debug, Default)]
struct Entries {
    sessions: HashMap<Arc<str>, Entry>,
    /// How many everybody has.
    counts: HashMap<Whose, usize>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    whose: Whose,
    began: Instant,
    used: Instant,
}

impl Entries {
    fn insert(&mut self, session: Session, now: Instant) {
        let (id, whose) = (Arc::clone(&session.id), session.whose());
        self.remove(&id);
        *self.counts.entry(whose.clone()).or_default() += 1;
        self.sessions.insert(id, Entry { session: Arc::new(session), whose, began: now, used: now });
    }

    fn remove(&mut self, id: &str) -> Option<Entry> {
        let entry = self.sessions.remove(id)?;
        if let Some(count) = self.counts.get_mut(&entry.whose) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&entry.whose);
            }
        }
        Some(entry)
    }

    /// The session of a client that ends first. One that is open does so only if they all are.
    fn oldest(&self, whose: &Whose, is_open: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        let own = self.sessions.iter().filter(|(_, entry)| entry.whose == *whose);
        own.min_by_key(|(id, entry)| (is_open(id), entry.used)).map(|(id, _)| Arc::clone(id))
    }
}

impl Memory {
    /// A store for so many sessions, and so many of one client, that live so long.
    pub(super) fn new(lifetimes: Lifetimes, most: usize, most_each: usize) -> Self {
        Self { entries: Mutex::default(), lifetimes, most: most.max(1), most_each: most_each.max(1) }
    }

    /// Adds a session, unless there is one with that id. When another one had to end for it, that is named. `is_open` tells
    /// whether a session has a stream that somebody reads.
    pub(super) fn create(&self, session: Session, is_open: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        let held = entries.sessions.get(&session.id);
        if held.is_some_and(|entry| self.is_alive(entry, now)) {
            return None;
        }
        let is_new = held.is_none();
        let whose = session.whose();
        let ended = if entries.counts.get(&whose).is_some_and(|count| *count >= self.most_each) {
            entries.oldest(&whose, is_open)
        } else if is_new && entries.sessions.len() >= self.most {
            let greediest = entries.counts.iter().max_by_key(|(_, count)| **count).map(|(whose, _)| whose);
            greediest.and_then(|whose| entries.oldest(whose, is_open))
        } else {
            None
        };
        let ended = ended.inspect(|id| drop(entries.remove(id)));
        entries.insert(session, now);
        ended
    }

    /// The session with that id. When it `is_used` by that, it lives for as long again.
    pub(super) fn get(&self, id: &str, is_used: impl Fn(&Session) -> bool) -> Option<Arc<Session>> {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        let entry = entries.sessions.get_mut(id).filter(|entry| self.is_alive(entry, now))?;
        if is_used(&entry.session) {
            entry.used = now;
        }
        Some(Arc::clone(&entry.session))
    }

    /// Whether there is such a session. Asking does not count as use.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.entries.lock().sessions.get(id).is_some_and(|entry| self.is_alive(entry, Instant::now()))
    }

    /// Changes what belongs to a session, if it is there.
    pub(super) fn update(&self, id: &str, change: impl FnOnce(&mut Metadata)) {
        if let Some(entry) = self.entries.lock().sessions.get_mut(id) {
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
        let mut entries = self.entries.lock();
        let over = entries.sessions.iter().filter(|(_, entry)| !self.is_alive(entry, now));
        for id in over.map(|(id, _)| Arc::clone(id)).collect::<Vec<_>>() {
            entries.remove(&id);
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let entries = self.entries.lock();
        assert_eq!(entries.sessions.len(), entries.counts.values().sum::<usize>());
        entries.sessions.len()
    }

    fn is_alive(&self, entry: &Entry, now: Instant) -> bool {
        let Lifetimes { idle, in_all } = self.lifetimes;
        now.duration_since(entry.used) < idle && now.duration_since(entry.began) < in_all
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use skep_mcp::Revision;

    use super::*;
    use crate::sessions::Kind;

    fn session(id: &str) -> Session {
        Session::new(id, Kind::Streamable, Revision::November2025, None)
    }

    fn lifetimes(idle: Duration) -> Lifetimes {
        Lifetimes { idle, in_all: Duration::from_hours(24) }
    }

    fn used(sessions: &Memory, id: &str) -> Option<Arc<Session>> {
        sessions.get(id, |_| true)
    }

    fn of(caller: &str, id: &str) -> Session {
        Session::new(id, Kind::Streamable, Revision::November2025, Some(&caller.into()))
    }

    #[test]
    fn a_session_is_there_once_and_until_it_ends() {
        let sessions = Memory::new(lifetimes(Duration::from_mins(1)), 10, 10);
        assert_eq!(sessions.create(session("a"), |_| false), None);
        let there = used(&sessions, "a").unwrap();
        sessions.create(session("a"), |_| false);
        assert!(Arc::ptr_eq(&used(&sessions, "a").unwrap(), &there), "it is the one that was there");
        drop(there);
        assert_eq!(used(&sessions, "a").unwrap().revision(), Revision::November2025);
        sessions.update("a", Metadata::clear);
        assert_eq!(used(&sessions, "a").unwrap().revision(), Revision::ASSUMED);
        assert!(sessions.delete("a") && !sessions.delete("a") && used(&sessions, "a").is_none());
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn idle_sessions_end_and_the_number_is_bounded() {
        let sessions = Memory::new(lifetimes(Duration::ZERO), 10, 10);
        sessions.create(session("a"), |_| false);
        assert!(used(&sessions, "a").is_none() && !sessions.contains("a"));
        sessions.create(session("a"), |_| false);
        assert_eq!(sessions.len(), 1);
        sessions.sweep();
        assert_eq!(sessions.len(), 0);
        let sessions = Memory::new(lifetimes(Duration::from_mins(1)), 3, 3);
        for id in ["a", "b", "c"] {
            sessions.create(session(id), |_| false);
        }
        used(&sessions, "a");
        assert_eq!(sessions.create(session("d"), |_| false).as_deref(), Some("b"));
        assert_eq!(sessions.len(), 3);
        assert!(!sessions.contains("b") && sessions.contains("a"));
        assert_eq!(sessions.create(session("e"), |id| id == "c").as_deref(), Some("a"), "somebody reads the other one");
    }

    #[test]
    fn a_session_that_is_used_all_the_time_ends_as_well() {
        let in_all = Duration::from_millis(50);
        let sessions = Memory::new(Lifetimes { idle: Duration::from_mins(1), in_all }, 10, 10);
        let began = Instant::now();
        sessions.create(session("a"), |_| false);
        while used(&sessions, "a").is_some() {
            assert!(began.elapsed() < Duration::from_secs(10), "it does not end");
        }
        assert!(began.elapsed() >= in_all && !sessions.contains("a"));
        sessions.sweep();
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn a_session_lives_no_longer_for_being_looked_at() {
        let sessions = Memory::new(lifetimes(Duration::from_mins(1)), 2, 2);
        for id in ["a", "b"] {
            sessions.create(session(id), |_| false);
        }
        assert!(sessions.get("a", |_| false).is_some());
        assert_eq!(sessions.create(session("c"), |_| false).as_deref(), Some("a"), "it was idle the longest");
    }

    #[test]
    fn a_client_with_many_sessions_loses_its_own() {
        let sessions = Memory::new(lifetimes(Duration::from_mins(1)), 5, 3);
        sessions.create(of("ann", "a"), |_| false);
        for number in 0..10 {
            let ended = sessions.create(of("eve", &format!("e{number}")), |_| false);
            assert_eq!(ended.as_deref(), (number > 2).then(|| format!("e{}", number - 3)).as_deref());
        }
        assert!(sessions.contains("a"));
        sessions.create(of("bob", "b"), |_| false);
        // There are as many as there may be, and the one who has most makes room.
        assert_eq!(sessions.create(of("joe", "j"), |_| false).as_deref(), Some("e7"));
        let at = |address: [u8; 4], id| session(id).at(Some(address.into()));
        assert_eq!(sessions.create(at([10, 0, 0, 1], "x"), |_| false).as_deref(), Some("e8"));
        assert_eq!(sessions.len(), 5);
        let sessions = Memory::new(lifetimes(Duration::from_mins(1)), 5, 1);
        sessions.create(at([10, 0, 0, 1], "x"), |_| false);
        assert_eq!(sessions.create(at([10, 0, 0, 2], "y"), |_| false), None, "it is at another address");
        assert_eq!(sessions.create(at([10, 0, 0, 1], "z"), |_| false).as_deref(), Some("x"));
    }
}
