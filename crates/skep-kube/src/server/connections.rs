//! The connections of a listener: how many there may be at once, and who gives way to a new one when there are too many.
//!
//! Anybody can open connections and leave them open. So a connection on which nothing is under way goes when its place
//! is needed, those first of whom nobody knows who they are, and of these the one that has been quiet for longest. What
//! somebody who is known has under way is never cut off for another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The connections of one listener.
#[derive(Debug)]
pub struct Connections {
    limit: usize,
    open: Mutex<Open>,
    /// A place is free, or somebody might give way who did not before.
    change: Notify,
}

#[derive(Debug, Default)]
struct Open {
    seats: BTreeMap<u64, Arc<Seat>>,
    /// How many there ever were.
    count: u64,
}

/// One connection, as seen from outside.
#[derive(Debug)]
pub struct Seat {
    activity: watch::Sender<Activity>,
    leave: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Activity {
    /// Requests that are answered, or whose answers are sent.
    under_way: usize,
    /// When the last request began or ended, or the connection itself.
    since: Instant,
    /// Whether somebody has proved who they are.
    is_known: bool,
    is_leaving: bool,
}

/// How readily a connection gives way, the first one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    QuietStranger,
    Quiet,
    /// Strangers have nothing to wait for that takes long, unless they do not take their answer.
    Stranger,
}

impl Connections {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, open: Mutex::default(), change: Notify::new() })
    }

    /// A place for a new connection. Waits while everybody has something to do.
    pub async fn place(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.free_place() {
                return place;
            }
            self.make_room();
            self.change.notified().await;
        }
    }

    fn free_place(self: &Arc<Self>) -> Option<Place> {
        let mut open = self.open.lock();
        if open.seats.len() >= self.limit {
            return None;
        }
        let number = open.count;
        let seat = Arc::new(Seat::new(Instant::now()));
        open.count += 1;
        open.seats.insert(number, seat.clone());
        Some(Place { connections: self.clone(), number, seat })
    }

    /// Asks somebody to leave, unless somebody is about to.
    pub fn make_room(&self) {
        let open = self.open.lock();
        let activities = || open.seats.values().map(|seat| (seat, *seat.activity.borrow()));
        // One that began something in the last moment may stay for long.
        if activities().any(|(_, activity)| activity.is_leaving && activity.under_way == 0) {
            return;
        }
        let ranked = activities().filter_map(|(seat, activity)| Some((activity.rank()?, activity.since, seat)));
        if let Some((.., seat)) = ranked.min_by_key(|(rank, since, _)| (*rank, *since)) {
            seat.activity.send_modify(|activity| activity.is_leaving = true);
            seat.leave.notify_one();
        }
    }
}

impl Activity {
    /// None: it does not give way.
    fn rank(&self) -> Option<Rank> {
        match (self.under_way, self.is_known) {
            _ if self.is_leaving => None,
            (0, false) => Some(Rank::QuietStranger),
            (0, true) => Some(Rank::Quiet),
            (_, false) => Some(Rank::Stranger),
            (_, true) => None,
        }
    }
}

impl Seat {
    fn new(since: Instant) -> Self {
        let activity = Activity { under_way: 0, since, is_known: false, is_leaving: false };
        Self { activity: watch::Sender::new(activity), leave: Notify::new() }
    }

    /// Remembers that somebody has proved who they are.
    pub fn recognise(&self) {
        self.activity.send_if_modified(|activity| !std::mem::replace(&mut activity.is_known, true));
    }

    pub fn is_known(&self) -> bool {
        self.activity.borrow().is_known
    }

    /// Waits until the place is needed for another.
    pub async fn is_asked_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Waits until no request has been under way for some time, or begun. One whose head does not come to an end is none.
    pub async fn is_quiet_for(&self, limit: Duration) {
        let mut activity = self.activity.subscribe();
        loop {
            let Activity { under_way, since, .. } = *activity.borrow_and_update();
            // The sender is part of this, so that it cannot go away meanwhile.
            let change = activity.changed();
            if under_way > 0 {
                let _ = change.await;
            } else if tokio::time::timeout_at(since + limit, change).await.is_err() {
                return;
            }
        }
    }
}

/// The right to a connection, for as long as it is held.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    number: u64,
    seat: Arc<Seat>,
}

impl Place {
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Notes that a request is under way until what this returns is dropped.
    pub fn begin(&self) -> UnderWay {
        self.seat.activity.send_modify(|activity| {
            activity.under_way += 1;
            activity.since = Instant::now();
        });
        UnderWay { connections: self.connections.clone(), seat: self.seat.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open.lock().seats.remove(&self.number);
        self.connections.change.notify_one();
    }
}

/// A request that is answered, or its answer that is sent.
#[derive(Debug)]
pub struct UnderWay {
    connections: Arc<Connections>,
    seat: Arc<Seat>,
}

impl UnderWay {
    pub fn until_the_end_of(self, body: Body) -> Body {
        Body::new(body.map_err(move |error| {
            let _ = &self;
            error
        }))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.seat.activity.send_modify(|activity| {
            activity.under_way -= 1;
            activity.since = Instant::now();
        });
        self.connections.change.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    /// Whether somebody was asked to leave.
    fn leaves(place: &Place) -> bool {
        place.seat.activity.borrow().is_leaving
    }

    #[tokio::test]
    async fn the_one_that_is_missed_least_gives_way() {
        let connections = Connections::new(5);
        let mut places = Vec::new();
        for _ in 0..5 {
            places.push(connections.place().await);
        }
        let [watcher, waiter, stranger, busy, late] = &places[..] else { panic!("{places:?}") };
        watcher.seat.recognise();
        waiter.seat.recognise();
        let (watch, _asked) = (watcher.begin(), busy.begin());
        // It was quiet for less long than the other stranger.
        drop(late.begin());
        assert!(connections.place().now_or_never().is_none());
        assert!(leaves(stranger));
        assert!(connections.place().now_or_never().is_none());
        assert_eq!(places.iter().filter(|place| leaves(place)).count(), 1, "one place is needed");
        let mut work = Vec::new();
        for number in [2, 4, 1, 3] {
            let expected = places.iter().position(|place| place.number == number);
            let leaving = places.iter().position(leaves);
            assert_eq!(leaving, expected, "{places:?}");
            drop(places.remove(expected.unwrap()));
            let newcomer = connections.place().now_or_never().unwrap();
            newcomer.seat.recognise();
            work.push(newcomer.begin());
            places.push(newcomer);
            assert!(connections.place().now_or_never().is_none());
        }
        assert!(!places.iter().any(leaves), "who is known and has something under way stays");
        let place = connections.place();
        tokio::pin!(place);
        assert!(place.as_mut().now_or_never().is_none());
        drop(watch);
        assert!(place.as_mut().now_or_never().is_none());
        assert!(leaves(&places[0]), "the watch is over");
        drop(places.remove(0));
        place.await;
    }
}
