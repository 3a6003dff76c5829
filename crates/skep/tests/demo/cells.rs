//! The cells of a table, several at a time: most of what they do is waiting.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Cells that are tried at the same time.
const AT_ONCE: usize = 4;

/// Tries all cells. The first one that fails fails them all, once those that have begun are over.
pub(crate) fn each<T: Sync>(cells: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(cell);
                }
            });
        }
    });
}

/// Each of the one with each of the other.
pub(crate) fn pairs<R: Copy, C: Copy>(rows: &[R], columns: &[C]) -> Vec<(R, C)> {
    rows.iter().flat_map(|row| columns.iter().map(move |column| (*row, *column))).collect()
}
