//! Keeps calls from waiting, one after the other, for somebody who does not answer.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// After so many questions without an answer nobody is asked for a while.
const SILENCES: u32 = 3;
/// For so long. Then one asks, and the others still do not.
const REST: Duration = Duration::from_secs(5);

/// What is known about the last questions.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    silences: u32,
    /// Nobody is asked before that.
    rests_until: Option<Instant>,
}

impl Breaker {
    /// Whether somebody may be asked now.
    pub(super) fn may_ask(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let may = state.rests_until.is_none_or(|end| now >= end);
        if may && state.rests_until.is_some() {
            // Whoever comes meanwhile does not have to wait for this one.
            state.rests_until = Some(now + REST);
        }
        may
    }

    /// Notes what came of a question.
    pub(super) fn asked(&self, now: Instant, is_silent: bool) {
        let mut state = self.0.lock();
        if !is_silent {
            *state = State::default();
            return;
        }
        state.silences += 1;
        if state.silences >= SILENCES {
            state.rests_until = Some(now + REST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_silent_is_left_alone_and_then_asked_by_one() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        for _ in 0..SILENCES {
            assert!(breaker.may_ask(start));
            breaker.asked(start, true);
        }
        assert!(!breaker.may_ask(start) && !breaker.may_ask(start + REST / 2));
        let later = start + REST;
        assert!(breaker.may_ask(later) && !breaker.may_ask(later), "one tries");
        breaker.asked(later, true);
        assert!(!breaker.may_ask(later + REST / 2));
        let last = later + REST;
        assert!(breaker.may_ask(last));
        breaker.asked(last, false);
        assert!(breaker.may_ask(last) && breaker.may_ask(last));
    }

    #[test]
    fn silences_count_only_in_a_row() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        for _ in 0..SILENCES * 2 {
            breaker.asked(now, true);
            breaker.asked(now, false);
        }
        assert!(breaker.may_ask(now));
    }
}
