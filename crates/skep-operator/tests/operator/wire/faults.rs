//! Requests that fail, wait, or meet a conflict, at random but from a seed.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use skep_conformance::changes::Random;

use super::Sent;

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    None,
    Delay(Duration),
    /// It is refused and was never there.
    Refuse(u16, &'static str),
    /// It is refused because the namespace is on its way out.
    Terminating,
    /// The connection is lost, and it was never there.
    Reset,
    /// Nobody answers for a while, and it was never there.
    Stall(Duration),
    /// It succeeds, but nobody learns of it.
    Lose,
    /// It succeeds, but the answer ends after a while.
    Cut(Duration),
    /// It never ends.
    Hang,
}

/// Faults until they end.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    random: Arc<Mutex<Option<Random>>>,
    /// How the path of a list ends that is never followed after it was read once.
    unwatched: Option<&'static str>,
    trouble: Arc<Mutex<Option<Trouble>>>,
}

/// What happens to everything of which the path has a part.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    part: &'static str,
    fault: Fault,
    /// Whether reads go through.
    writes_only: bool,
}

impl Trouble {
    fn hits(&self, sent: &Sent) -> bool {
        sent.path.contains(self.part) && (sent.is_write() || !self.writes_only)
    }
}

impl Faults {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn seeded(seed: u64) -> Self {
        Self { random: Arc::new(Mutex::new(Some(Random(seed)))), ..Self::default() }
    }

    /// A watch that tells nothing.
    pub fn unwatched(end: &'static str) -> Self {
        Self { unwatched: Some(end), ..Self::default() }
    }

    /// From now on everything goes well.
    pub fn end(&self) {
        *self.random.lock() = None;
        *self.trouble.lock() = None;
    }

    /// From now on nothing whose path has this part can be reached.
    pub fn cut_off(&self, part: &'static str) {
        *self.trouble.lock() = Some(Trouble { part, fault: Fault::Reset, writes_only: false });
    }

    /// From now on whoever writes where the path has this part finds that somebody else was faster.
    pub fn contest(&self, part: &'static str) {
        *self.trouble.lock() = Some(Trouble { part, fault: Fault::Refuse(409, "Conflict"), writes_only: true });
    }

    /// From now on whoever writes where the path has this part is told that the namespace is on its way out.
    pub fn terminate(&self, part: &'static str) {
        *self.trouble.lock() = Some(Trouble { part, fault: Fault::Terminating, writes_only: true });
    }

    /// Everything can be reached again.
    pub fn reconnect(&self) {
        *self.trouble.lock() = None;
    }

    /// A quarter of the writes and a tenth of the reads are spoilt; more reads would only wait for the next try of a
    /// watch.
    pub(super) fn next(&self, sent: &Sent) -> Fault {
        if sent.is_watch && self.unwatched.is_some_and(|end| sent.path.ends_with(end)) {
            return Fault::Hang;
        }
        if let Some(trouble) = self.trouble.lock().filter(|trouble| trouble.hits(sent)) {
            return trouble.fault;
        }
        let mut random = self.random.lock();
        let Some(random) = random.as_mut() else { return Fault::None };
        let mut up_to = |limit| Duration::from_millis(u64::try_from(random.below(limit)).unwrap());
        let (short, long) = (up_to(40), up_to(400));
        match random.below(40) {
            0 => Fault::Refuse(500, "InternalError"),
            1 => Fault::Refuse(503, "ServiceUnavailable"),
            2 => Fault::Reset,
            3 => Fault::Stall(long),
            4..=9 => Fault::Delay(short),
            10..=12 if sent.is_write() => Fault::Refuse(409, "Conflict"),
            13..=15 if sent.is_write() => Fault::Lose,
            10..=19 if sent.is_watch => Fault::Cut(long),
            _ => Fault::None,
        }
    }
}
