//! Buckets of tokens in the memory of this process, for a proxy that counts alone.
//!
//! They say what those in Redis would say. The crate governor has none that could: a bucket of it gives a token when it is
//! asked and takes none back, so that a call which the last of several buckets refuses would have cost the others theirs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Bucket, Concerned};

/// So many buckets may be known before those are looked for that are full again.
const FEW: usize = 1024;
/// Never more than so many are known, unless there are more limits than that.
const MOST: usize = 16_384;

/// All buckets. One that is not known is full.
#[derive(Debug)]
pub(super) struct MemoryBuckets(Mutex<Levels>);

#[derive(Debug)]
struct Levels {
    known: HashMap<String, Level>,
    /// With more than so many, those go that say nothing.
    room: usize,
}

/// What a bucket had when something was taken from it last.
#[derive(Debug)]
struct Level {
    bucket: Bucket,
    tokens: f64,
    taken: Instant,
    is_shared: bool,
}

impl Default for MemoryBuckets {
    fn default() -> Self {
        Self(Mutex::new(Levels { known: HashMap::new(), room: FEW }))
    }
}

impl MemoryBuckets {
    /// Takes tokens from all of these, or from none; then it says which one has too few.
    pub(super) fn take<'a>(&self, buckets: &'a [Concerned], now: Instant) -> Option<&'a Concerned> {
        let mut levels = self.0.lock();
        let short = buckets.iter().find(|concerned| levels.tokens(concerned, now) < f64::from(concerned.calls));
        if short.is_none() {
            for concerned in buckets {
                levels.lower(concerned, now);
            }
            levels.make_room(now);
        }
        short
    }
}

impl Levels {
    fn tokens(&self, concerned: &Concerned, now: Instant) -> f64 {
        self.known.get(&concerned.key).map_or(f64::from(concerned.bucket.tokens), |level| level.tokens(now))
    }

    fn lower(&mut self, concerned: &Concerned, now: Instant) {
        let tokens = self.tokens(concerned, now) - f64::from(concerned.calls);
        let (bucket, is_shared) = (concerned.bucket, concerned.scope.is_shared());
        let level = Level { bucket, tokens, taken: now, is_shared };
        if let Some(known) = self.known.get_mut(&concerned.key) {
            *known = level;
        } else {
            self.known.insert(concerned.key.clone(), level);
        }
    }

    /// Forgets buckets that are full again. When that is not enough, those of the users who have not called for longest go
    /// before their time; what everybody shares stays, so that no crowd can fill it.
    fn make_room(&mut self, now: Instant) {
        if self.known.len() <= self.room {
            return;
        }
        self.known.retain(|_, level| level.tokens(now) < f64::from(level.bucket.tokens));
        if self.known.len() > MOST {
            let mut taken: Vec<Instant> =
                self.known.values().filter(|level| !level.is_shared).map(|level| level.taken).collect();
            taken.sort_unstable();
            if let Some(middle) = taken.get(taken.len() / 2) {
                self.known.retain(|_, level| level.is_shared || level.taken > *middle);
            }
        }
        self.room = (2 * self.known.len()).clamp(FEW, MOST);
    }
}

impl Level {
    /// What it has now, in the arithmetic of the script.
    fn tokens(&self, now: Instant) -> f64 {
        let most = f64::from(self.bucket.tokens);
        let passed = microseconds(now.saturating_duration_since(self.taken));
        most.min(self.tokens + passed * most / microseconds(self.bucket.period))
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is exact for 285 years")]
fn microseconds(time: Duration) -> f64 {
    time.as_micros() as f64
}

#[cfg(test)]
mod tests {
    use super::super::check::{PER_USER, SHARED, Scope};
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const YEAR: Duration = Duration::from_hours(24 * 365);

    fn concerned(scope: &'static str, name: &str, tokens: u32, period: Duration) -> Concerned {
        let bucket = Bucket { tokens, period };
        Concerned { key: format!("{scope}:{name}"), bucket, scope: Scope::new(scope, "server"), calls: 1 }
    }

    #[test]
    fn a_bucket_fills_with_time_and_no_further_than_to_its_brim() {
        let (buckets, start) = (MemoryBuckets::default(), Instant::now());
        let call = [concerned(SHARED, "", 3, MINUTE)];
        let passes = |after: u64| buckets.take(&call, start + Duration::from_secs(after)).is_none();
        assert_eq!([0, 0, 0, 0, 19, 20, 20].map(passes), [true, true, true, false, false, true, false]);
        assert_eq!([3600, 3600, 3600, 3600].map(passes), [true, true, true, false]);
    }

    #[test]
    fn who_is_refused_by_one_bucket_takes_nothing_from_others() {
        let (buckets, now) = (MemoryBuckets::default(), Instant::now());
        let call = [concerned(SHARED, "", 5, YEAR), concerned(PER_USER, "ann", 1, YEAR)];
        assert!(buckets.take(&call, now).is_none());
        for _ in 0..10 {
            assert_eq!(buckets.take(&call, now).unwrap().key, "per_user:ann");
        }
        let left = (0..10).filter(|_| buckets.take(&call[..1], now).is_none()).count();
        assert_eq!(left, 4);
    }

    #[test]
    fn users_who_went_away_are_forgotten() {
        let (buckets, start) = (MemoryBuckets::default(), Instant::now());
        for number in 0..100 * u32::try_from(FEW).unwrap() {
            // Each of them would have a full bucket again after a second.
            let call = [concerned(PER_USER, &number.to_string(), 1, Duration::from_secs(1))];
            assert!(buckets.take(&call, start + Duration::from_millis(2) * number).is_none());
            assert!(buckets.0.lock().known.len() <= FEW + 1);
        }
    }

    #[test]
    fn a_crowd_takes_no_more_memory_than_there_is_and_opens_nothing_that_is_shared() {
        let (buckets, start) = (MemoryBuckets::default(), Instant::now());
        let spent = [concerned(SHARED, "tool", 1, YEAR)];
        assert!(buckets.take(&spent, start).is_none());
        let user = |number: usize| [concerned(PER_USER, &number.to_string(), 1, YEAR)];
        let time = |number: usize| start + Duration::from_micros(u64::try_from(number).unwrap());
        for number in 0..3 * MOST {
            assert!(buckets.take(&user(number), time(number)).is_none());
            assert!(buckets.0.lock().known.len() <= MOST + 1);
        }
        assert!(buckets.take(&spent, time(3 * MOST)).is_some());
        assert!(buckets.take(&user(3 * MOST - 1), time(3 * MOST)).is_some(), "who called just now is remembered");
    }
}
