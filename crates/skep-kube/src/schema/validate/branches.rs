//! `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::super::Schema;
use super::keywords::{Outcome, Walk};
use crate::go_text;
use crate::status::FieldError;

pub(super) fn check(walk: &Walk<'_>, schema: &Schema, new: &Value, old: Option<&Value>, at: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let branch = |branch: &Schema| walk.value(branch, new, old, at);
    any_of(&schema.any_of, branch, at, &mut outcome);
    one_of(&schema.one_of, branch, at, &mut outcome);
    all_of(&schema.all_of, branch, at, &mut outcome);
    if let Some(not) = &schema.not
        && branch(not).errors.is_empty()
    {
        outcome.errors.push(about(at, "must not validate the schema (not)"));
    }
    outcome
}

fn about(at: &str, words: &str) -> FieldError {
    FieldError::invalid("", "", format!("{} {words}", go_text::quoted(at)))
}

/// The outcomes of all branches up to the first that the value keeps to.
struct Tried {
    passed: Option<Outcome>,
    /// Of the branches that fail, the one that looked at the most.
    best_failure: Option<Outcome>,
}

impl Tried {
    fn new() -> Self {
        Self { passed: None, best_failure: None }
    }

    fn failed(&mut self, outcome: Outcome) {
        if self.best_failure.as_ref().is_none_or(|best| outcome.weight > best.weight) {
            self.best_failure = Some(outcome);
        }
    }
}

fn any_of(branches: &[Schema], check: impl Fn(&Schema) -> Outcome, at: &str, outcome: &mut Outcome) {
    if branches.is_empty() {
        return;
    }
    let mut tried = Tried::new();
    for branch in branches {
        let result = check(branch);
        if result.errors.is_empty() {
            tried.passed = Some(result);
            break;
        }
        tried.failed(result);
    }
    if let Some(passed) = tried.passed {
        outcome.merge(passed);
    } else {
        outcome.errors.push(about(at, "must validate at least one schema (anyOf)"));
        outcome.merge(tried.best_failure.unwrap_or_default());
    }
}

fn one_of(branches: &[Schema], check: impl Fn(&Schema) -> Outcome, at: &str, outcome: &mut Outcome) {
    if branches.is_empty() {
        return;
    }
    let mut tried = Tried::new();
    let mut passing = 0;
    for branch in branches {
        let result = check(branch);
        if result.errors.is_empty() {
            passing += 1;
            tried.passed.get_or_insert(result);
        } else {
            tried.failed(result);
        }
    }
    match passing {
        0 => {
            outcome.errors.push(about(at, "must validate one and only one schema (oneOf). Found none valid"));
            outcome.merge(tried.best_failure.unwrap_or_default());
        }
        1 => outcome.merge(tried.passed.unwrap_or_default()),
        several => {
            let words = format!("must validate one and only one schema (oneOf). Found {several} valid alternatives");
            outcome.errors.push(about(at, &words));
        }
    }
}

fn all_of(branches: &[Schema], check: impl Fn(&Schema) -> Outcome, at: &str, outcome: &mut Outcome) {
    let results: Vec<Outcome> = branches.iter().map(check).collect();
    let passing = results.iter().filter(|result| result.errors.is_empty()).count();
    for result in results {
        outcome.merge(result);
    }
    if passing != branches.len() {
        let ending = if passing == 0 { ". None validated" } else { "" };
        outcome.errors.push(about(at, &format!("must validate all the schemas (allOf){ending}")));
    }
}
