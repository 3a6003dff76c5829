//! Lets one at a time do something that others would do again, for each of many things.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// All turns. What nobody waits for takes no room.
#[derive(Debug)]
pub(crate) struct Turns<K>(Mutex<HashMap<K, Queue>>);

type Lock = Arc<tokio::sync::Mutex<()>>;

/// Those who want to do the same.
#[derive(Debug, Default)]
struct Queue {
    lock: Lock,
    /// How many they are. Owners of the lock do not tell: one who leaves is one until the table is free again.
    length: usize,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Turns<K> {
    /// A place among those who want to do something.
    pub(crate) fn of(&self, key: &K) -> Turn<'_, K> {
        let mut turns = self.0.lock();
        let queue = turns.entry(key.clone()).or_default();
        queue.length += 1;
        Turn { turns: self, key: key.clone(), lock: Arc::clone(&queue.lock) }
    }
}

/// The place of one of them.
#[derive(Debug)]
pub(crate) struct Turn<'a, K: Eq + Hash> {
    turns: &'a Turns<K>,
    key: K,
    lock: Lock,
}

impl<K: Eq + Hash> Turn<'_, K> {
    /// Waits until it is this one's turn, which it is for as long as what is given is kept.
    pub(crate) async fn come(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.lock.lock().await
    }
}

impl<K: Eq + Hash> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        let mut turns = self.turns.0.lock();
        let Some(queue) = turns.get_mut(&self.key) else { return };
        queue.length -= 1;
        if queue.length == 0 {
            turns.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_want_the_same_come_one_after_the_other_and_leave_nothing() {
        let turns = Turns::default();
        let (first, second, other) = (turns.of(&"a"), turns.of(&"a"), turns.of(&"b"));
        let held = first.come().await;
        let _other = other.come().await;
        assert!(second.lock.try_lock().is_err());
        drop(held);
        drop(first);
        assert!(second.lock.try_lock().is_ok() && Arc::ptr_eq(&turns.of(&"a").lock, &second.lock));
        drop(second);
        assert_eq!(turns.0.lock().len(), 1);
    }

    #[test]
    fn turns_that_end_together_leave_nothing() {
        let (turns, together) = (Turns::default(), std::sync::Barrier::new(8));
        for _ in 0..200 {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let turn = turns.of(&"a");
                        together.wait();
                        drop(turn);
                    });
                }
            });
            assert!(turns.0.lock().is_empty());
        }
    }
}
