//! What one pass has to say about a workload. It is written once, at the end of the pass.

use skep_api::conditions::{self, Condition, Statement};

use crate::time::now;

/// The statements of a pass, and which earlier ones stand although nothing was said.
#[derive(Debug, Default)]
pub struct Report {
    said: Vec<Statement>,
    kept: Vec<&'static str>,
}

impl Report {
    /// Says something. Of two statements about one thing the later one counts.
    pub fn say(&mut self, statement: Statement) {
        self.said.push(statement);
    }

    /// Leaves a condition as it is: nothing could be found out about it.
    pub fn keep(&mut self, type_: &'static str) {
        self.kept.push(type_);
    }

    /// The conditions that follow from the report. Of the `managed` ones those go about which nothing was said; others
    /// are not ours and stay.
    pub fn conditions(self, before: &[Condition], managed: &[&str], generation: Option<i64>) -> Vec<Condition> {
        let said = |type_: &str| self.said.iter().any(|statement| statement.type_ == type_);
        let mut after: Vec<Condition> = before.to_vec();
        after.retain(|condition| {
            let type_ = condition.type_.as_str();
            !managed.contains(&type_) || said(type_) || self.kept.contains(&type_)
        });
        let now = now();
        let mut statements = self.said;
        while let Some(statement) = (!statements.is_empty()).then(|| statements.remove(0)) {
            if statements.iter().all(|later| later.type_ != statement.type_) {
                conditions::set(&mut after, statement, generation, &now);
            }
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts_and_silence_removes() {
        let mut first = Report::default();
        first.say(Statement::holds("A", "Yes", ""));
        first.say(Statement::holds("B", "Yes", ""));
        first.say(Statement::holds("C", "Yes", ""));
        first.say(Statement::holds("Foreign", "Yes", ""));
        let before = first.conditions(&[], &[], Some(1));
        let mut second = Report::default();
        second.say(Statement::holds("A", "Yes", ""));
        second.say(Statement::fails("A", "No", ""));
        second.keep("C");
        let after = second.conditions(&before, &["A", "B", "C"], Some(2));
        let found: Vec<_> =
            after.iter().map(|condition| (condition.type_.as_str(), condition.reason.as_str())).collect();
        assert_eq!(found, [("A", "No"), ("C", "Yes"), ("Foreign", "Yes")]);
        assert_eq!(conditions::find(&after, "C").and_then(|kept| kept.observed_generation), Some(1));
    }
}
