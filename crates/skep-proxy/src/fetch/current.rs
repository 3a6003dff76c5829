//! What was made of files that may change: it is made anew when they have, and stays while they cannot be used.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::tls_files::{FilesError, Stamp};

/// So often files that cannot be used are read again although they look the same: what was missing may be nothing that
/// their size and time show, such as a permission or a free descriptor.
const AGAIN: Duration = Duration::from_secs(30);

/// What is used now.
pub(super) struct Current<T> {
    /// The files as they were when they were read last.
    stamp: Stamp,
    made: T,
    /// Why what was read last cannot be used, and when that was.
    unusable: Option<(Arc<str>, Instant)>,
}

impl<T: Clone> Current<T> {
    pub(super) fn new(stamp: Stamp, made: T) -> Self {
        Self { stamp, made, unusable: None }
    }

    /// What is to be used while the files are like this, and what is wrong with them if it was made of older ones: they
    /// may be half written. They are read when they have changed, and not for everybody who asks.
    pub(super) fn renew(
        &mut self,
        stamp: Stamp,
        now: Instant,
        build: impl FnOnce() -> Result<T, FilesError>,
    ) -> (T, Option<Arc<str>>) {
        if self.stamp != stamp || self.is_due(now) {
            match build() {
                Ok(made) => (self.made, self.unusable) = (made, None),
                Err(error) => self.unusable = Some((error.to_string().into(), now)),
            }
            self.stamp = stamp;
        }
        (self.made.clone(), self.unusable.as_ref().map(|(error, _)| Arc::clone(error)))
    }

    fn is_due(&self, now: Instant) -> bool {
        self.unusable.as_ref().is_some_and(|(_, read)| now.duration_since(*read) >= AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::tls::TlsError;

    #[test]
    fn files_that_cannot_be_used_are_not_read_for_everybody_who_asks() {
        let (begun, reads) = (Instant::now(), Cell::new(0));
        let of_size = |size| -> Stamp { [Some((1, size, 0, 0)), None, None] };
        let mut current = Current::new(of_size(1), "first");
        let mut ask = |size, now, found: Option<&'static str>| {
            let (made, unusable) = current.renew(of_size(size), now, || {
                reads.set(reads.get() + 1);
                found.ok_or(FilesError::Tls(TlsError::Key))
            });
            (made, unusable.is_some(), reads.get())
        };
        assert_eq!(ask(1, begun, None), ("first", false, 0), "they have not changed");
        assert_eq!(ask(2, begun, None), ("first", true, 1));
        let soon = begun + AGAIN / 2;
        assert_eq!(ask(2, soon, Some("second")), ("first", true, 1), "they are the same");
        assert_eq!(ask(3, soon, None), ("first", true, 2), "they have changed");
        assert_eq!(ask(4, soon, Some("second")), ("second", false, 3));
        assert_eq!(ask(4, soon + AGAIN, None), ("second", false, 3), "nothing is wrong with them");
        assert_eq!(ask(5, soon, None), ("second", true, 4));
        assert_eq!(ask(5, soon + AGAIN, Some("third")), ("third", false, 5), "it was not their fault");
    }
}
