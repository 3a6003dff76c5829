//! The sessions of a pool while it is locked. Whatever a request needs is found without looking at those of others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ALL, PER_ADDRESS, PER_CLIENT, Purpose};
use crate::eras::holder::Holder;
use crate::eras::line::NoSession;
use crate::eras::server_session::ServerSession;
use crate::sessions::Whose;
use crate::tally::Tally;

/// What a session is known by within its pool. None is used twice.
pub(super) type Number = u64;

/// For whom a session counts.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) principal: Holder,
    pub(super) whose: Whose,
}

impl Claim {
    /// Where somebody is who has proved nothing.
    fn address(&self) -> Option<&Whose> {
        Some(&self.whose).filter(|whose| matches!(whose, Whose::At(_)))
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) session: Arc<ServerSession>,
    /// Whoever it was opened for.
    pub(super) claim: Claim,
    pub(super) purpose: Purpose,
    pub(super) users: usize,
    /// Whether the one user does not share it.
    pub(super) is_exclusive: bool,
    /// When nobody begins to use it any more.
    pub(super) until: Instant,
    pub(super) used: Instant,
}

impl Entry {
    /// Where somebody looks who wants a session: first among those that others share already.
    fn place(&self, number: Number) -> Option<(Purpose, bool, Number)> {
        let is_free = self.users == 0;
        (is_free || !self.is_exclusive).then(|| (self.purpose.clone(), is_free, number))
    }
}

/// All sessions that are open, and the places of those that are being opened.
#[derive(Debug, Default)]
pub(super) struct Entries {
    all: HashMap<Number, Entry>,
    next: Number,
    /// Those that somebody may begin to use, by what they are for and whether nobody uses them.
    ready: BTreeSet<(Purpose, bool, Number)>,
    /// Those that nobody uses, the one first that was not used for the longest time.
    idle: BTreeSet<(Instant, Number)>,
    /// Those of them that count for an address.
    idle_at: BTreeSet<(Whose, Instant, Number)>,
    /// Those of clients that can be told from others.
    owned: BTreeSet<(Holder, Number)>,
    /// How many of them everybody has, with those that are being opened.
    each: Tally<Holder>,
    /// The same of all at one address who have proved nothing.
    at: Tally<Whose>,
    /// How many are being opened.
    coming: usize,
}

impl Entries {
    /// A session that may be used by somebody more now.
    pub(super) fn take(&mut self, purpose: &Purpose, is_exclusive: bool) -> Option<(Number, Arc<ServerSession>)> {
        let now = Instant::now();
        let places = (purpose.clone(), is_exclusive, Number::MIN)..=(purpose.clone(), true, Number::MAX);
        let mut found = self.ready.range(places).map(|(.., number)| *number);
        let number = found.find(|number| self.all.get(number).is_some_and(|entry| now < entry.until))?;
        let entry = self.change(number, |entry| {
            entry.users += 1;
            entry.is_exclusive = is_exclusive;
        })?;
        Some((number, Arc::clone(&entry.session)))
    }

    /// Takes a place for a session that is to be opened. Where there is none, sessions have to go that nobody uses.
    pub(super) fn make_room(&mut self, claim: &Claim, gone: &mut Vec<Arc<ServerSession>>) -> Result<(), NoSession> {
        loop {
            let is_own_full = self.each.of(&claim.principal) >= PER_CLIENT;
            let full = claim.address().filter(|address| self.at.of(*address) >= PER_ADDRESS);
            let unused = match full {
                _ if is_own_full => self.own_idle(&claim.principal),
                Some(address) => self.idle_at(address),
                None if self.all.len() + self.coming < ALL => break,
                None => self.idle.first().map(|(_, number)| *number),
            };
            gone.push(unused.and_then(|number| self.remove(number)).ok_or(NoSession::Full)?.session);
        }
        self.coming += 1;
        self.count(claim);
        Ok(())
    }

    /// Gives a place back that was taken for a session.
    pub(super) fn leave_room(&mut self, claim: &Claim) {
        self.coming -= 1;
        self.discount(claim);
    }

    fn count(&mut self, claim: &Claim) {
        if claim.principal.is_known() {
            self.each.add(claim.principal.clone());
        }
        if let Some(address) = claim.address() {
            self.at.add(address.clone());
        }
    }

    fn discount(&mut self, claim: &Claim) {
        self.each.remove(&claim.principal);
        if let Some(address) = claim.address() {
            self.at.remove(address);
        }
    }

    /// Adds a session.
    pub(super) fn insert(&mut self, entry: Entry) -> Number {
        let number = self.next;
        self.next += 1;
        self.count(&entry.claim);
        if entry.claim.principal.is_known() {
            self.owned.insert((entry.claim.principal.clone(), number));
        }
        self.show(number, &entry);
        self.all.insert(number, entry);
        number
    }

    /// Takes a session out.
    pub(super) fn remove(&mut self, number: Number) -> Option<Entry> {
        let entry = self.all.remove(&number)?;
        self.hide(number, &entry);
        self.owned.remove(&(entry.claim.principal.clone(), number));
        self.discount(&entry.claim);
        Some(entry)
    }

    /// Somebody does not use a session any more. Gives what is known about it then.
    pub(super) fn release(&mut self, number: Number) -> Option<&Entry> {
        self.change(number, |entry| {
            entry.users -= 1;
            entry.used = Instant::now();
        })
    }

    /// Takes those out that nobody uses and that are too old, or were not used for so long.
    pub(super) fn sweep(&mut self, idle: Duration) -> Vec<Entry> {
        let now = Instant::now();
        let is_over = |entry: &Entry| now.duration_since(entry.used) > idle || now >= entry.until;
        let unused = self.idle.iter().map(|(_, number)| *number);
        let over: Vec<Number> = unused.filter(|number| self.all.get(number).is_some_and(is_over)).collect();
        over.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// Takes all of them out.
    pub(super) fn clear(&mut self) -> Vec<Entry> {
        let all: Vec<Number> = self.all.keys().copied().collect();
        all.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let known = self.all.values().filter(|entry| entry.claim.principal.is_known()).count();
        let unused = self.all.values().filter(|entry| entry.users == 0).count();
        assert_eq!((self.owned.len(), self.idle.len()), (known, unused));
        assert!(self.ready.len() >= unused && self.ready.len() <= self.all.len());
        assert!(self.idle_at.len() <= unused);
        assert!(!self.all.is_empty() || self.coming > 0 || (self.each.is_empty() && self.at.is_empty()));
        self.all.len()
    }

    /// The session of a client that nobody has used for the longest time. No client has many.
    fn own_idle(&self, principal: &Holder) -> Option<Number> {
        let own = (principal.clone(), Number::MIN)..=(principal.clone(), Number::MAX);
        let own = self.owned.range(own).filter_map(|(_, number)| Some((*number, self.all.get(number)?)));
        own.filter(|(_, entry)| entry.users == 0).min_by_key(|(_, entry)| entry.used).map(|(number, _)| number)
    }

    /// The session of those at an address that nobody has used for the longest time.
    fn idle_at(&self, address: &Whose) -> Option<Number> {
        let from = (address.clone(), self.idle.first()?.0, Number::MIN);
        let first = self.idle_at.range(from..).next().filter(|(whose, ..)| whose == address);
        first.map(|(.., number)| *number)
    }

    fn change(&mut self, number: Number, change: impl FnOnce(&mut Entry)) -> Option<&Entry> {
        let mut entry = self.all.remove(&number)?;
        self.hide(number, &entry);
        change(&mut entry);
        self.show(number, &entry);
        Some(self.all.entry(number).or_insert(entry))
    }

    fn show(&mut self, number: Number, entry: &Entry) {
        self.ready.extend(entry.place(number));
        if entry.users == 0 {
            self.idle.insert((entry.used, number));
            self.idle_at.extend(entry.claim.address().map(|address| (address.clone(), entry.used, number)));
        }
    }

    fn hide(&mut self, number: Number, entry: &Entry) {
        if let Some(place) = entry.place(number) {
            self.ready.remove(&place);
        }
        self.idle.remove(&(entry.used, number));
        if let Some(address) = entry.claim.address() {
            self.idle_at.remove(&(address.clone(), entry.used, number));
        }
    }
}
