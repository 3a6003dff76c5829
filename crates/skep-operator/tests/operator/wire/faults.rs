//! Requests that fail, wait, or meet a conflict, at random but from a seed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::Sent;

/// Numbers that look random (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap();
        usize::try_from(self.number() % end).unwrap()
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    None,
    Delay(Duration),
    /// It fails and was never there.
    Refuse,
    /// It meets a conflict and was never there.
    Conflict,
    /// It succeeds, but nobody learns of it.
    Lose,
    /// It never ends.
    Hang,
}

/// Faults until they end.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    random: Arc<Mutex<Option<Random>>>,
    /// How the path of a list ends that is never followed after it was read once.
    unwatched: Option<&'static str>,
}

impl Faults {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn seeded(seed: u64) -> Self {
        Self { random: Arc::new(Mutex::new(Some(Random(seed)))), unwatched: None }
    }

    /// A watch that tells nothing.
    pub fn unwatched(end: &'static str) -> Self {
        Self { unwatched: Some(end), ..Self::default() }
    }

    pub fn end(&self) {
        *self.random.lock() = None;
    }

    /// Half of the writes and some of the reads are spoilt; more reads would only wait for the next try of a watch.
    pub(super) fn next(&self, sent: &Sent) -> Fault {
        if sent.is_watch && self.unwatched.is_some_and(|end| sent.path.ends_with(end)) {
            return Fault::Hang;
        }
        let mut random = self.random.lock();
        let Some(random) = random.as_mut() else { return Fault::None };
        let delay = Duration::from_millis(u64::try_from(random.below(40)).unwrap());
        match random.below(20) {
            0 => Fault::Refuse,
            1..=4 => Fault::Delay(delay),
            5..=6 if sent.is_write() => Fault::Conflict,
            7..=9 if sent.is_write() => Fault::Lose,
            _ => Fault::None,
        }
    }
}
