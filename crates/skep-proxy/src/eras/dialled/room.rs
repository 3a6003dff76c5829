//! How many sessions there may be: in all, and of one client, so that nobody takes the places of all others.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::eras::line::NoSession;
use crate::sessions::Whose;
use crate::tally::Tally;

/// Sessions at the same time, and those of one client.
pub(super) const ALL: usize = 1024;
pub(super) const PER_CLIENT: usize = 256;

/// The places for sessions.
#[derive(Debug, Default)]
pub(super) struct Room(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    each: Tally<Whose>,
}

/// The place of one session, which is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Room>,
    whose: Whose,
}

impl Room {
    /// A place for somebody.
    pub(super) fn take(self: &Arc<Self>, whose: &Whose) -> Result<Place, NoSession> {
        let mut taken = self.0.lock();
        if taken.each.of(whose) >= PER_CLIENT {
            return Err(NoSession::TooMany(PER_CLIENT));
        }
        if taken.all >= ALL {
            return Err(NoSession::Full);
        }
        taken.all += 1;
        taken.each.add(whose.clone());
        Ok(Place { room: Arc::clone(self), whose: whose.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.0.lock();
        taken.all -= 1;
        taken.each.remove(&self.whose);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_does_not_take_all_places_and_all_clients_no_more_than_there_are() {
        let room: Arc<Room> = Arc::default();
        let known = |name: &str| Whose::Known(name.into());
        let take = |whose: &Whose| room.take(whose);
        let mut places: Vec<Place> = (0..PER_CLIENT).map(|_| take(&known("ann")).unwrap()).collect();
        assert!(matches!(take(&known("ann")), Err(NoSession::TooMany(_))));
        let at = |address: [u8; 4]| Whose::At(Some(address.into()));
        let others = [known("bob"), at([10, 0, 0, 1]), at([10, 0, 0, 2])];
        places.extend(others.iter().flat_map(|whose| (0..PER_CLIENT).map(|_| take(whose).unwrap())));
        assert!(matches!(take(&known("eve")), Err(NoSession::Full)));
        places.remove(0);
        places.push(take(&known("eve")).unwrap());
        assert!(take(&known("ann")).is_err());
        drop(places);
        let taken = room.0.lock();
        assert!(taken.all == 0 && taken.each.is_empty());
    }
}
