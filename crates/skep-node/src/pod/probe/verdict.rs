//! From single answers to a verdict: a threshold of equal answers in a row.

use super::Plan;

/// What a probe says about its container at the moment.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    good: bool,
    /// How many answers in a row were like the last one.
    run: u32,
    last: Option<bool>,
}

impl Verdict {
    /// Before the first answer: a container is alive until proven otherwise, but neither started nor ready.
    pub(crate) fn new(good: bool) -> Self {
        Self { good, run: 0, last: None }
    }

    /// Takes in an answer. `Some` when the verdict becomes clear with it: thresholds reached anew.
    pub(crate) fn take(&mut self, plan: &Plan, answer: bool) -> Option<bool> {
        self.run = if self.last == Some(answer) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(answer);
        let needed = if answer { plan.successes } else { plan.failures };
        if self.run < needed {
            return None;
        }
        let first = self.run == needed;
        let changed = self.good != answer;
        self.good = answer;
        (changed || first).then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pod::probe::Question;

    fn plan(successes: u32, failures: u32) -> Plan {
        let second = Duration::from_secs(1);
        Plan {
            question: Question::Unsupported(""),
            initial_delay: second,
            period: second,
            timeout: second,
            successes,
            failures,
            grace: None,
        }
    }

    #[test]
    fn answers_in_a_row_decide() {
        let plan = plan(2, 3);
        let mut verdict = Verdict::new(false);
        let answers = [true, true, true, false, false, true, false, false, false, false, true, true];
        let decided: Vec<_> = answers.into_iter().map(|answer| verdict.take(&plan, answer)).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(decided, [None, yes, None, None, None, None, None, None, no, None, None, yes]);
    }
}
