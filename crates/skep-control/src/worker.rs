//! The loop of every controller: take an item from the queue, bring it to its desired state, repeat what failed.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};

use crate::queue::Queue;

/// Enough for a slow server, short enough that a hanging request does not block an object for long.
const RECONCILE_LIMIT: Duration = Duration::from_mins(2);
const FIRST_DELAY: Duration = Duration::from_millis(20);
const LAST_DELAY: Duration = Duration::from_mins(1);
/// A conflict means that the cache is about to change; there is no need to grow impatient slowly.
const CONFLICT_DELAY: Duration = Duration::from_millis(50);
/// A conflict that is met so often in a row is a failure like any other: the cache does not change.
const MOST_CONFLICTS: u32 = 10;

/// What is left to do after a successful pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes.
    Rest,
    /// Look again after this time: a deadline or a minimum readiness will have passed.
    After(Duration),
}

impl Next {
    /// Looks again after some time, or not at all.
    pub fn after(delay: Option<Duration>) -> Self {
        delay.map_or(Self::Rest, Self::After)
    }
}

/// Why a pass failed.
pub trait Failure: Display {
    /// Somebody else was faster: the next look at the cache will tell what is left to do.
    fn is_conflict(&self) -> bool;
}

/// Is told how every pass ended.
pub trait Observer {
    /// A pass took this long, and succeeded or not.
    fn passed(&self, took: Duration, succeeded: bool);
}

/// Nobody wants to know.
impl Observer for () {
    fn passed(&self, _: Duration, _: bool) {}
}

/// Works on up to `concurrency` items at a time, for ever.
pub async fn work<T, F, E>(
    controller: &'static str,
    queue: &Queue<T>,
    concurrency: usize,
    observer: &impl Observer,
    reconcile: impl Fn(T) -> F,
) where
    T: Clone + Eq + Hash + Ord + Display,
    F: Future<Output = Result<Next, E>>,
    E: Failure,
{
    let mut running = FuturesUnordered::new();
    let mut setbacks: HashMap<T, Setbacks> = HashMap::new();
    loop {
        tokio::select! {
            item = queue.next(), if running.len() < concurrency => {
                let pass = tokio::time::timeout(RECONCILE_LIMIT, reconcile(item.clone()));
                let began = Instant::now();
                // One object over which a pass panics must not stop the others.
                running.push(async move { (item, began, AssertUnwindSafe(pass).catch_unwind().await) });
            }
            Some((item, began, outcome)) = running.next() => {
                observer.passed(began.elapsed(), matches!(outcome, Ok(Ok(Ok(_)))));
                let is_conflict = matches!(&outcome, Ok(Ok(Err(error))) if error.is_conflict());
                if is_conflict && setbacks.entry(item.clone()).or_default().is_soon_over() {
                    queue.done(item, Some(CONFLICT_DELAY));
                    continue;
                }
                let error: &dyn Display = match &outcome {
                    Ok(Ok(Ok(next))) => {
                        setbacks.remove(&item);
                        let again = match next {
                            Next::Rest => None,
                            Next::After(delay) => Some(*delay),
                        };
                        queue.done(item, again);
                        continue;
                    }
                    Ok(Ok(Err(error))) => error,
                    Ok(Err(_)) => &"not finished in time",
                    Err(_) => &"the pass panicked: please report that, with what the log says before this line",
                };
                let delay = setbacks.entry(item.clone()).or_default().delay();
                tracing::warn!(controller, object = %item, %error, retry_in = ?delay, "not reconciled");
                queue.done(item, Some(delay));
            }
        }
    }
}

/// What has gone wrong with an item since a pass over it went well.
#[derive(Default)]
struct Setbacks {
    failures: u32,
    conflicts: u32,
}

impl Setbacks {
    /// Counts a conflict, and says whether it is one of the first.
    fn is_soon_over(&mut self) -> bool {
        self.conflicts = self.conflicts.saturating_add(1);
        self.conflicts <= MOST_CONFLICTS
    }

    /// Counts a failure, and says how long to wait after it.
    fn delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        delay_after(self.failures)
    }
}

/// Doubles with each failure.
pub(crate) fn delay_after(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(1_u32 << failures.saturating_sub(1).min(20)).min(LAST_DELAY)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fmt;

    use super::*;

    struct No;

    impl fmt::Display for No {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("no")
        }
    }

    impl Failure for No {
        fn is_conflict(&self) -> bool {
            false
        }
    }

    #[test]
    fn delays_double_up_to_a_limit() {
        assert_eq!(delay_after(1), Duration::from_millis(20));
        assert_eq!(delay_after(2), Duration::from_millis(40));
        assert_eq!(delay_after(8), Duration::from_millis(2560));
        assert_eq!(delay_after(u32::MAX), LAST_DELAY);
    }

    #[tokio::test]
    async fn failed_work_is_repeated() {
        let queue = Queue::default();
        queue.add("a");
        let passes = Cell::new(0);
        let passes = &passes;
        let all = work("test", &queue, 2, &(), |_| async move {
            passes.set(passes.get() + 1);
            if passes.get() < 4 { Err(No) } else { Ok(Next::Rest) }
        });
        let enough = async {
            while passes.get() < 4 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = all => {}
            () = enough => {}
        }
        assert_eq!(passes.get(), 4);
    }

    /// Works until `is_enough`.
    async fn work_until<F: Future<Output = Result<Next, No>>>(
        queue: &Queue<&'static str>,
        pass: impl Fn(&'static str) -> F,
        is_enough: impl Fn() -> bool,
    ) {
        let enough = async {
            while !is_enough() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = work("test", queue, 2, &(), pass) => {}
            () = enough => {}
        }
    }

    #[tokio::test]
    async fn a_pass_that_panics_is_repeated_and_stops_no_other() {
        let queue = Queue::default();
        let (panicked, well) = (Cell::new(0), Cell::new(0));
        let (panicked, well) = (&panicked, &well);
        let pass = |item| async move {
            if item == "bad" {
                panicked.set(panicked.get() + 1);
                panic!("as it should in this test");
            }
            well.set(well.get() + 1);
            Ok(Next::Rest)
        };
        queue.add("bad");
        work_until(&queue, pass, || panicked.get() > 1).await;
        queue.add("good");
        work_until(&queue, pass, || well.get() > 0).await;
        assert!(panicked.get() > 1 && well.get() == 1);
    }

    #[test]
    fn conflicts_that_stay_are_met_less_and_less() {
        let mut met = Setbacks::default();
        let first = (0..MOST_CONFLICTS).all(|_| met.is_soon_over());
        assert!(first && !met.is_soon_over());
        assert_eq!([met.delay(), met.delay()], [1, 2].map(delay_after));
    }
}
