//! The sessions while they are locked. Whoever has to go is found without looking at all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use foldhash::quality::RandomState;

use super::super::{Session, Whose};

/// So many open sessions in a row are passed over when one has to end.
const PASSED_OVER: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) sessions: HashMap<Arc<str>, Entry, RandomState>,
    /// Those of each client, the one first that was noted to be used the longest time ago.
    clients: HashMap<Whose, BTreeSet<(Instant, Arc<str>)>>,
    /// How many everybody has.
    counts: BTreeSet<(usize, Whose)>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) session: Arc<Session>,
    whose: Whose,
    pub(super) began: Instant,
    pub(super) used: Instant,
    /// When it was used, as far as the order of its client's sessions knows. That is found out when it matters, so that a
    /// use costs nothing.
    noted: Instant,
}

impl Entries {
    /// How many somebody has.
    pub(super) fn count(&self, whose: &Whose) -> usize {
        self.clients.get(whose).map_or(0, BTreeSet::len)
    }

    /// Who has most.
    pub(super) fn greediest(&self) -> Option<Whose> {
        self.counts.last().map(|(_, whose)| whose.clone())
    }

    pub(super) fn insert(&mut self, session: Session, now: Instant) {
        let (id, whose) = (Arc::clone(&session.id), session.whose());
        self.remove(&id);
        self.recount(&whose, |own| {
            own.insert((now, Arc::clone(&id)));
        });
        let entry = Entry { session: Arc::new(session), whose, began: now, used: now, noted: now };
        self.sessions.insert(id, entry);
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Entry> {
        let (id, entry) = self.sessions.remove_entry(id)?;
        let noted = (entry.noted, id);
        self.recount(&entry.whose, |own| {
            own.remove(&noted);
        });
        Some(entry)
    }

    /// The session of a client that ends first. One that is open does so only if those are, too, that would come after it.
    pub(super) fn oldest(&mut self, whose: &Whose, now: Instant, is_open: impl Fn(&str) -> bool) -> Option<Arc<str>> {
        let own = self.clients.get_mut(whose)?;
        let mut passed_over = Vec::new();
        while passed_over.len() < PASSED_OVER.min(own.len()) {
            let (noted, id) = own.pop_first()?;
            let entry = self.sessions.get_mut(&id)?;
            if entry.used == noted {
                if !is_open(&id) {
                    own.insert((noted, Arc::clone(&id)));
                    return Some(id);
                }
                passed_over.push(Arc::clone(&id));
                // Whoever reads its stream uses it.
                entry.used = now;
            }
            entry.noted = entry.used;
            own.insert((entry.noted, id));
        }
        passed_over.into_iter().next()
    }

    /// Changes which sessions somebody has.
    fn recount(&mut self, whose: &Whose, change: impl FnOnce(&mut BTreeSet<(Instant, Arc<str>)>)) {
        let own = self.clients.entry(whose.clone()).or_default();
        self.counts.remove(&(own.len(), whose.clone()));
        change(own);
        if own.is_empty() {
            self.clients.remove(whose);
        } else {
            self.counts.insert((own.len(), whose.clone()));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let counted: usize = self.counts.iter().map(|(count, _)| count).sum();
        let ordered: usize = self.clients.values().map(BTreeSet::len).sum();
        assert_eq!([counted, ordered], [self.sessions.len(); 2]);
        self.sessions.len()
    }
}
