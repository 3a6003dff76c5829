//! What was found out about the era of a server, for those who watch over it.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::verdict::Verdict;

/// Every verdict that there was. The last one is remembered also when it is not believed any more.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Written>);

#[derive(Debug, Default)]
struct Written {
    last: Option<(Verdict, Instant)>,
    changes: u64,
}

/// What is told about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) verdict: Verdict,
    /// How long ago it was found out, or said.
    pub(crate) age: Duration,
    /// How often it was found to be another one than before.
    pub(crate) changes: u64,
}

impl Record {
    /// A verdict has been found, perhaps the same as before. Tells whether it is news.
    pub(super) fn write(&self, verdict: Verdict) -> bool {
        let mut written = self.0.lock();
        let before = written.last.replace((verdict, Instant::now())).map(|(before, _)| before);
        if before.is_some_and(|before| before != verdict) {
            written.changes += 1;
        }
        before != Some(verdict)
    }

    /// What is told now. Nothing before anything is known.
    pub(super) fn status(&self) -> Option<Status> {
        let written = self.0.lock();
        let (verdict, found) = written.last?;
        Some(Status { verdict, age: found.elapsed(), changes: written.changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_counted_when_it_is_another_one() {
        let record = Record::default();
        assert_eq!(record.status(), None);
        let (legacy, modern) = (Verdict::Legacy, Verdict::Modern);
        for (verdict, is_news, changes) in [(legacy, true, 0), (legacy, false, 0), (modern, true, 1), (legacy, true, 2)]
        {
            assert_eq!(record.write(verdict), is_news);
            let status = record.status().unwrap();
            assert_eq!((status.verdict, status.changes), (verdict, changes));
        }
    }
}
