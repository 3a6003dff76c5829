//! Lets one at a time do something that others would do again, for each of many things.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// All turns. What nobody waits for takes no room.
#[derive(Debug)]
pub(crate) struct Turns<K>(Mutex<HashMap<K, Lock>>);

type Lock = Arc<tokio::sync::Mutex<()>>;

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Turns<K> {
    /// A place among those who want to do something.
    pub(crate) fn of(&self, key: &K) -> Turn<'_, K> {
        let lock = Arc::clone(self.0.lock().entry(key.clone()).or_default());
        Turn { turns: self, key: key.clone(), lock }
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
        // The table and we hold the last two.
        if Arc::strong_count(&self.lock) <= 2 {
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
}
