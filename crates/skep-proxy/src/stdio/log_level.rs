//! From which level on the clients want log messages. The server has one level: that of the client that wants most.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The levels, the most urgent first.
const LEVELS: [&str; 8] = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];

/// Whether a message of one level is for somebody who wants them from another one on.
pub(crate) fn is_at_least(level: &str, wanted: &str) -> bool {
    let rank = |name: &str| LEVELS.iter().position(|known| *known == name);
    // A level that nobody knows may be urgent.
    rank(level).is_none_or(|level| rank(wanted).is_none_or(|wanted| level <= wanted))
}

/// Whether there is such a level.
pub(crate) fn is_known(level: &str) -> bool {
    LEVELS.contains(&level)
}

/// The level of each session that has set one.
#[derive(Debug, Default)]
pub(crate) struct LogLevels(Mutex<HashMap<Arc<str>, usize>>);

impl LogLevels {
    /// Sets the level of a session, if that one is still there. When the server needs another level, that is it.
    pub(crate) fn set(&self, session: &Arc<str>, level: &str, is_there: impl FnOnce() -> bool) -> Option<&'static str> {
        // One that nobody knows may want anything.
        let rank = LEVELS.iter().position(|known| *known == level).unwrap_or(LEVELS.len() - 1);
        // A session is forgotten under the same lock, after it is gone.
        self.change(|levels| is_there().then(|| levels.insert(Arc::clone(session), rank))?)
    }

    /// Forgets a session. When the server needs another level, that is it.
    pub(crate) fn forget(&self, session: &str) -> Option<&'static str> {
        self.change(|levels| levels.remove(session))
    }

    /// The level that the server needs, if any session has set one.
    pub(crate) fn level(&self) -> Option<&'static str> {
        Self::most(&self.0.lock())
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<Arc<str>, usize>) -> Option<usize>) -> Option<&'static str> {
        let mut levels = self.0.lock();
        let before = Self::most(&levels);
        change(&mut levels);
        Self::most(&levels).filter(|now| Some(*now) != before)
    }

    fn most(levels: &HashMap<Arc<str>, usize>) -> Option<&'static str> {
        levels.values().max().and_then(|rank| LEVELS.get(*rank)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_told_when_the_most_talkative_level_changes() {
        let levels = LogLevels::default();
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let set = |session, level| levels.set(session, level, || true);
        assert_eq!(set(&a, "error"), Some("error"));
        assert_eq!(set(&b, "alert"), None);
        assert_eq!(set(&b, "whatever"), Some("debug"));
        assert_eq!(levels.forget("b"), Some("error"));
        assert_eq!(levels.forget("a"), None);
        assert_eq!(levels.level(), None);
    }

    #[test]
    fn whoever_has_left_sets_no_level() {
        let levels = LogLevels::default();
        assert_eq!(levels.set(&Arc::from("a"), "debug", || false), None);
        assert_eq!(levels.level(), None);
    }

    #[test]
    fn messages_are_for_those_who_want_that_much() {
        assert!(is_at_least("error", "warning") && is_at_least("warning", "warning"));
        assert!(!is_at_least("info", "warning") && is_at_least("whatever", "emergency"));
    }
}
