//! How many of something there may be: in all, and of one client, so that nobody takes the places of all others.

use std::sync::Arc;

use parking_lot::Mutex;

use super::line::NoSession;
use crate::sessions::Whose;
use crate::tally::Tally;

/// The places.
#[derive(Debug)]
pub(super) struct Room {
    /// So many are taken at the same time.
    all: usize,
    /// So many of one client.
    each: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    each: Tally<Whose>,
}

/// One place, which is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    whose: Whose,
}

impl Room {
    /// So many places, and so many of them for one client.
    pub(super) fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { all, each, taken: Mutex::default() })
    }

    /// A place for somebody.
    pub(super) fn take(self: &Arc<Self>, whose: &Whose) -> Result<Place, NoSession> {
        let mut taken = self.taken.lock();
        if taken.each.of(whose) >= self.each {
            return Err(NoSession::TooMany(self.each));
        }
        if taken.all >= self.all {
            return Err(NoSession::Full);
        }
        taken.all += 1;
        taken.each.add(whose.clone());
        Ok(Place { room: Arc::clone(self), whose: whose.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock();
        taken.all -= 1;
        taken.each.remove(&self.whose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_does_not_take_all_places_and_all_clients_no_more_than_there_are() {
        let room = Room::new(12, 3);
        let known = |name: &str| Whose::Known(name.into());
        let take = |whose: &Whose| room.take(whose);
        let mut places: Vec<Place> = (0..3).map(|_| take(&known("ann")).unwrap()).collect();
        assert!(matches!(take(&known("ann")), Err(NoSession::TooMany(_))));
        let at = |address: [u8; 4]| Whose::At(Some(address.into()));
        let others = [known("bob"), at([10, 0, 0, 1]), at([10, 0, 0, 2])];
        places.extend(others.iter().flat_map(|whose| (0..3).map(|_| take(whose).unwrap())));
        assert!(matches!(take(&known("eve")), Err(NoSession::Full)));
        places.remove(0);
        places.push(take(&known("eve")).unwrap());
        assert!(take(&known("ann")).is_err());
        drop(places);
        let taken = room.taken.lock();
        assert!(taken.all == 0 && taken.each.is_empty());
    }
}
