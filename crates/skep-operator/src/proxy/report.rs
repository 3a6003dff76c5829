//! What one pass has to say about a workload. It is written once, at the end of the pass.

use skep_api::conditions::{self, Condition, Statement, types};

use crate::time::now;

/// Conditions of both kinds of workload. Only their controllers write them.
const SHARED: [&str; 11] = [
    types::READY,
    types::POD_TEMPLATE_VALID,
    types::SESSION_STORAGE_WARNING,
    types::GROUP_REF_VALIDATED,
    types::CA_BUNDLE_REF_VALIDATED,
    types::OIDC_CONFIG_REF_VALIDATED,
    types::AUTHZ_CONFIG_REF_VALIDATED,
    types::TELEMETRY_CONFIG_REF_VALIDATED,
    types::EXTERNAL_AUTH_CONFIG_VALIDATED,
    types::AUTH_SERVER_REF_VALIDATED,
    types::AUTHZ_PRIMARY_UPSTREAM_PROVIDER_IGNORED,
];

/// Conditions that the contract gives no generation.
const UNDATED: [&str; 1] = [types::AUTH_CONFIGURED];

/// The statements of a pass, and which earlier ones stand although nothing was said.
#[derive(Debug, Default)]
pub struct Report {
    said: Vec<Statement>,
    kept: Vec<&'static str>,
    cleared: Vec<(&'static str, Option<&'static str>)>,
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

    /// What was wrong is over. The condition goes, also where it would be kept, unless it has this reason.
    pub fn clear(&mut self, type_: &'static str, unless: Option<&'static str>) {
        self.cleared.push((type_, unless));
    }

    /// The conditions that follow from the report. Of the shared ones and of the kind's `own` those go about which
    /// nothing was said and which nobody keeps; others are not ours and stay.
    pub fn conditions(self, before: &[Condition], own: &[&str], generation: Option<i64>) -> Vec<Condition> {
        let said = |type_: &str| self.said.iter().any(|statement| statement.type_ == type_);
        let mut after: Vec<Condition> = before.to_vec();
        after.retain(|condition| {
            let type_ = condition.type_.as_str();
            let is_cleared = self
                .cleared
                .iter()
                .any(|(cleared, unless)| *cleared == type_ && unless.is_none_or(|unless| condition.reason != unless));
            let is_ours = SHARED.contains(&type_) || own.contains(&type_);
            !is_ours || said(type_) || (self.kept.contains(&type_) && !is_cleared)
        });
        let now = now();
        let mut statements = self.said;
        while let Some(statement) = (!statements.is_empty()).then(|| statements.remove(0)) {
            if statements.iter().all(|later| later.type_ != statement.type_) {
                let generation = generation.filter(|_| !UNDATED.contains(&statement.type_.as_ref()));
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
        first.say(Statement::holds("D", "Yes", ""));
        first.say(Statement::holds("Foreign", "Yes", ""));
        let before = first.conditions(&[], &[], Some(1));
        let mut second = Report::default();
        second.say(Statement::holds("A", "Yes", ""));
        second.say(Statement::fails("A", "No", ""));
        second.keep("C");
        second.clear("C", Some("Yes"));
        second.keep("D");
        second.clear("D", Some("No"));
        let after = second.conditions(&before, &["A", "B", "C", "D"], Some(2));
        let found: Vec<_> =
            after.iter().map(|condition| (condition.type_.as_str(), condition.reason.as_str())).collect();
        assert_eq!(found, [("A", "No"), ("C", "Yes"), ("Foreign", "Yes")]);
        assert_eq!(conditions::find(&after, "C").and_then(|kept| kept.observed_generation), Some(1));
    }
}
