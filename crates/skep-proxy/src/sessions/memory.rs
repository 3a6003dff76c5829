//! Sessions in the memory of this process.

mod entries;

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use self::entries::{Entries, Entry};
use super::{Lifetimes, Metadata, Session};

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
        let ended = if entries.count(&whose) >= self.most_each {
            entries.oldest(&whose, now, is_open)
        } else if is_new && entries.sessions.len() >= self.most {
            entries.greediest().and_then(|whose| entries.oldest(&whose, now, is_open))
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
        self.entries.lock().len()
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
    fn who_has_to_go_is_found_without_looking_at_everybody() {
        const MOST: usize = 10_000;
        let sessions = Memory::new(lifetimes(Duration::from_mins(1)), 2 * MOST, MOST);
        for number in 0..MOST {
            sessions.create(of("ann", &format!("a{number}")), |_| false);
        }
        let looked = std::cell::Cell::new(0);
        let create = |id: &str, is_open: &dyn Fn(&str) -> bool| {
            looked.set(0);
            sessions.create(of("ann", id), |id| {
                looked.set(looked.get() + 1);
                is_open(id)
            })
        };
        used(&sessions, "a0");
        assert_eq!((create("b0", &|_| false).as_deref(), looked.get()), (Some("a1"), 1));
        assert_eq!((create("b1", &|id| id == "a2").as_deref(), looked.get()), (Some("a3"), 2));
        assert_eq!(create("b2", &|_| true).as_deref(), Some("a4"), "they are all open");
        assert!(looked.get() < 100, "{}", looked.get());
        assert_eq!(sessions.len(), MOST);
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
