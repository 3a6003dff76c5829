//! The work that waits: each item at most once, never handed out twice at a time, optionally not before some moment.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A deduplicating queue. It cannot outgrow the number of distinct items.
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    order: BTreeSet<(Instant, T)>,
    waiting: HashMap<T, Instant>,
    /// Items being worked on, with the moment from which they are wanted again.
    running: HashMap<T, Option<Instant>>,
}

impl<T: Clone + Eq + Hash + Ord> Default for Queue<T> {
    fn default() -> Self {
        let state = State { order: BTreeSet::new(), waiting: HashMap::new(), running: HashMap::new() };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl<T: Clone + Eq + Hash + Ord> Queue<T> {
    pub fn add(&self, item: T) {
        self.add_at(item, Instant::now());
    }

    pub fn add_after(&self, item: T, delay: Duration) {
        self.add_at(item, Instant::now() + delay);
    }

    fn add_at(&self, item: T, at: Instant) {
        {
            let mut state = self.state.lock();
            match state.running.get_mut(&item) {
                Some(again) => *again = Some(again.map_or(at, |earlier| earlier.min(at))),
                None => state.wait(item, at),
            }
        }
        self.changed.notify_one();
    }

    /// How many items wait, those whose time has not come included.
    pub fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next item whose time has come. [`Self::done`] must be called for it.
    pub async fn next(&self) -> T {
        loop {
            let changed = self.changed.notified();
            let earliest = match self.state.lock().take_due(Instant::now()) {
                Ok(item) => return item,
                Err(earliest) => earliest,
            };
            match earliest {
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Work on the item has ended; it comes back after `again`, or at once if it was added meanwhile.
    pub fn done(&self, item: T, again: Option<Duration>) {
        {
            let mut state = self.state.lock();
            let added = state.running.remove(&item).flatten();
            let wanted = again.map(|delay| Instant::now() + delay);
            let at = match (added, wanted) {
                (Some(added), Some(wanted)) => Some(added.min(wanted)),
                (one, other) => one.or(other),
            };
            if let Some(at) = at {
                state.wait(item, at);
            }
        }
        self.changed.notify_one();
    }
}

impl<T: Clone + Eq + Hash + Ord> State<T> {
    fn wait(&mut self, item: T, at: Instant) {
        if let Some(&earlier) = self.waiting.get(&item) {
            if earlier <= at {
                return;
            }
            self.order.remove(&(earlier, item.clone()));
        }
        self.waiting.insert(item.clone(), at);
        self.order.insert((at, item));
    }

    fn take_due(&mut self, now: Instant) -> Result<T, Option<Instant>> {
        match self.order.first() {
            Some((at, _)) if *at > now => Err(Some(*at)),
            None => Err(None),
            Some(_) => {
                let Some((_, item)) = self.order.pop_first() else { return Err(None) };
                self.waiting.remove(&item);
                self.running.insert(item.clone(), None);
                Ok(item)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_item_is_handed_out_once() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert!(queue.next().now_or_never().is_none());
    }

    #[tokio::test]
    async fn an_item_added_while_it_is_worked_on_comes_back_afterwards() {
        let queue = Queue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert!(queue.next().now_or_never().is_none());
        queue.done("a", Some(Duration::from_mins(1)));
        assert_eq!(queue.next().now_or_never(), Some("a"));
    }

    #[tokio::test]
    async fn the_earliest_wish_counts() {
        let queue = Queue::default();
        queue.add_after("a", Duration::from_mins(1));
        queue.add_after("a", Duration::from_millis(20));
        queue.add_after("a", Duration::from_secs(30));
        assert!(queue.next().now_or_never().is_none());
        let next = tokio::time::timeout(Duration::from_secs(20), queue.next()).await;
        assert_eq!(next, Ok("a"));
        queue.done("a", None);
        assert!(queue.next().now_or_never().is_none());
    }
}
