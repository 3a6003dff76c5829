//! Numbers that are counted, each under its labels.
//!
//! Counting takes no lock that anybody holds for long: a series is looked up under a shared lock and counted in atomics.
//! What clients say becomes labels, so that a metric has a largest number of series; what is beyond is counted together.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;

use crate::middleware::subject::cut;

/// So many series has one metric. The last one is for all that find no place any more.
pub(super) const SERIES: usize = 1000;
/// So many bytes of what somebody else says are in a label.
pub(super) const LABEL: usize = 128;
/// What stands for the rest of it.
const MORE: &str = "...";
/// What the series is known by that counts all others.
const OVERFLOW: (&str, Cow<'static, str>) = ("otel.metric.overflow", Cow::Borrowed("true"));

/// The bounds of all histograms, in seconds.
pub(super) const BOUNDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// What a series is known by.
pub(super) type Label<'a> = (&'static str, Cow<'a, str>);
type Key<'a> = Arc<[Label<'a>]>;

/// What somebody else says, as a label.
pub(super) fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= LABEL {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}{MORE}", cut(text, LABEL - MORE.len())))
}

/// Something that is counted.
pub(super) trait Series: Default {
    /// What it says now.
    fn point(&self) -> Point;
}

/// What a series says at some moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Point {
    Count(u64),
    Level(i64),
    Spread(Spread),
}

/// How many were in each range, the last one without an end, and all of them together in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread {
    pub(super) ranges: [u64; BOUNDS.len() + 1],
    pub(super) sum: f64,
}

impl Spread {
    pub(super) fn count(&self) -> u64 {
        self.ranges.iter().sum()
    }
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Series for Counter {
    fn point(&self) -> Point {
        Point::Count(self.0.load(Ordering::Relaxed))
    }
}

/// Something that goes up and down.
#[derive(Debug, Default)]
pub(super) struct Level(AtomicI64);

impl Level {
    pub(super) fn add(&self, number: i64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }
}

impl Series for Level {
    fn point(&self) -> Point {
        Point::Level(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
pub(super) struct Histogram {
    ranges: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub(super) fn record(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let range = BOUNDS.partition_point(|bound| *bound < seconds);
        self.ranges[range].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Series for Histogram {
    fn point(&self) -> Point {
        let ranges = std::array::from_fn(|range| self.ranges[range].load(Ordering::Relaxed));
        let sum = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        Point::Spread(Spread { ranges, sum })
    }
}

/// All series of one metric.
#[derive(Debug)]
pub(super) struct Family<S>(RwLock<HashMap<Key<'static>, Arc<S>>>);

impl<S> Default for Family<S> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<S: Series> Family<S> {
    /// The series with these labels.
    pub(super) fn of(&self, labels: &[Label<'_>]) -> Arc<S> {
        if let Some(series) = find(&self.0.read(), labels) {
            return series;
        }
        let mut all = self.0.write();
        if let Some(series) = find(&all, labels) {
            return series;
        }
        let key: Key<'static> = if all.len() + 1 < SERIES {
            labels.iter().map(|(name, value)| (*name, Cow::Owned(value.clone().into_owned()))).collect()
        } else {
            Arc::new([OVERFLOW])
        };
        Arc::clone(all.entry(key).or_default())
    }

    /// What all of them say, in the order of their labels.
    pub(super) fn read(&self) -> Vec<(Key<'static>, Point)> {
        let all: Vec<_> = self.0.read().iter().map(|(key, series)| (Arc::clone(key), Arc::clone(series))).collect();
        let mut points: Vec<_> = all.into_iter().map(|(key, series)| (key, series.point())).collect();
        points.sort_by(|(one, _), (other, _)| one.cmp(other));
        points
    }
}

/// Takes labels that live shorter than those that are kept.
fn find<'a, S>(all: &HashMap<Key<'a>, Arc<S>>, labels: &[Label<'a>]) -> Option<Arc<S>> {
    all.get(labels).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str) -> [Label<'_>; 1] {
        [("tool", Cow::Borrowed(name))]
    }

    #[test]
    fn trap_55_a_label_has_128_bytes_and_ends_in_dots() {
        let long = "é".repeat(4 << 20);
        let label = shortened(&long);
        assert_eq!((label.len(), label.ends_with("é...")), (127, true), "whole characters only");
        assert_eq!(shortened(&"a".repeat(129)), format!("{}...", "a".repeat(125)));
        assert_eq!(shortened(&"a".repeat(128)), "a".repeat(128));
    }

    #[test]
    fn a_metric_has_a_largest_number_of_series_and_loses_nothing() {
        let family = Family::<Counter>::default();
        for number in 0..2 * SERIES {
            family.of(&labels(&number.to_string())).increment();
            family.of(&labels("0")).increment();
        }
        let points = family.read();
        assert_eq!(points.len(), SERIES);
        let overflow: Key<'static> = Arc::new([OVERFLOW]);
        let count = |key: &Key<'_>| points.iter().find(|(known, _)| known == key).map(|(_, point)| point.clone());
        assert_eq!(count(&overflow), Some(Point::Count(SERIES as u64 + 1)));
        let total = points.iter().map(|(_, point)| if let Point::Count(count) = point { *count } else { 0 });
        assert_eq!(total.sum::<u64>(), 4 * SERIES as u64);
    }

    #[test]
    fn a_bound_belongs_to_the_range_below_it() {
        let histogram = Histogram::default();
        for milliseconds in [10, 11, 300_000, 300_001] {
            histogram.record(Duration::from_millis(milliseconds));
        }
        let Point::Spread(spread) = histogram.point() else { panic!() };
        assert_eq!((spread.ranges[0], spread.ranges[1], spread.ranges[13], spread.ranges[14]), (1, 1, 1, 1));
        assert_eq!(spread.count(), 4);
        assert!((spread.sum - 600.022).abs() < 1e-6, "{}", spread.sum);
    }
}
