//! Rules that could not be evaluated in time, whatever the object: those are refused with their definition.
//!
//! The real server counts more exactly, and refuses from the limit on. What is refused here is so far beyond it that no
//! way of counting would make a difference; what is not, is stopped when it costs too much.

use crate::status::FieldError;

/// The limit of the real server for one rule, and for all rules of a schema.
const RULE_LIMIT: u64 = 10_000_000;
const SCHEMA_LIMIT: u64 = 100_000_000;
/// How far beyond its limit a rule must be.
const FACTOR: u64 = 100;
/// How many rules are named that have made a schema too expensive.
const NAMED: usize = 4;

/// The rules of a schema that are far too expensive.
#[derive(Debug, Default)]
pub(super) struct Costs {
    expensive: Vec<Expensive>,
}

#[derive(Debug)]
struct Expensive {
    cost: u64,
    /// What it is called: a rule, or the expression of its message.
    what: &'static str,
    at: String,
}

impl Costs {
    /// Takes note of what the expression at a place can cost.
    pub(super) fn note(&mut self, what: &'static str, at: String, cost: u64) {
        if cost > RULE_LIMIT.saturating_mul(FACTOR) {
            self.expensive.push(Expensive { cost, what, at });
        }
    }

    /// What is wrong with the rules of the schema at a place.
    pub(super) fn check(mut self, schema: &str) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = Vec::new();
        for Expensive { cost, what, at } in &self.expensive {
            errors.push(FieldError::forbidden(at, exceeds(&format!("estimated {what} cost"), *cost, RULE_LIMIT)));
        }
        let total = self.expensive.iter().map(|expensive| expensive.cost).fold(0, u64::saturating_add);
        if total <= SCHEMA_LIMIT {
            return errors;
        }
        self.expensive.sort_by_key(|expensive| std::cmp::Reverse(expensive.cost));
        for Expensive { at, .. } in self.expensive.iter().take(NAMED) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(at, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(schema, exceeds(what, total, SCHEMA_LIMIT)));
        errors
    }
}

fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost / limit;
    let factor = if factor >= FACTOR { format!("more than {FACTOR}x") } else { format!("{factor}.0x") };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
