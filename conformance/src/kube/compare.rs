//! The differences between two recordings, and those that are known.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

use super::recording::{Exchange, Recording};
use crate::files::{LoadError, read};

/// A place at which two servers answer differently.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub scenario: String,
    /// Counted from 1.
    pub step: usize,
    pub request: String,
    /// `/status`, `/headers/…` or `/body/…`.
    pub path: String,
    /// Nothing when there is no such member.
    pub real: Option<Value>,
    pub ours: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        writeln!(formatter, "{} step {} ({}) at {}", self.scenario, self.step, self.request, self.path)?;
        writeln!(formatter, "    real: {}", shown(&self.real))?;
        write!(formatter, "    ours: {}", shown(&self.ours))
    }
}

/// A difference that stays, and why.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDifference {
    pub scenario: String,
    pub step: usize,
    /// The path of the difference, or of something above it.
    pub path: String,
    pub reason: String,
}

impl KnownDifference {
    fn covers(&self, difference: &Difference) -> bool {
        self.scenario == difference.scenario
            && self.step == difference.step
            && difference.path.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Reads `known-differences.yaml`.
pub fn known_differences() -> Result<Vec<KnownDifference>, LoadError> {
    let path = super::folder().join("known-differences.yaml");
    serde_saphyr::from_str(&read(&path)?).map_err(|error| LoadError::Parse { path, message: error.to_string() })
}

/// The differences that nobody has given a reason for.
pub fn unknown(differences: Vec<Difference>, known: &[KnownDifference]) -> Vec<Difference> {
    differences.into_iter().filter(|difference| !known.iter().any(|entry| entry.covers(difference))).collect()
}

/// The entries that cover no difference any more, and should be removed.
pub fn stale<'a>(known: &'a [KnownDifference], differences: &[Difference]) -> Vec<&'a KnownDifference> {
    known.iter().filter(|entry| !differences.iter().any(|difference| entry.covers(difference))).collect()
}

/// Where the answers of two servers to the same scenario differ.
pub fn compare(real: &Recording, ours: &Recording) -> Vec<Difference> {
    let mut found = Vec::new();
    let steps =
        |recording: &Recording| recording.exchanges.iter().map(|exchange| exchange.step).collect::<BTreeSet<_>>();
    for step in &steps(real) | &steps(ours) {
        let (real_exchange, our_exchange) = (real.exchange(step), ours.exchange(step));
        let request = real_exchange.or(our_exchange).map(|one| one.request.clone());
        let mut places = Vec::new();
        let (real_answer, our_answer) = (real_exchange.map(answer), our_exchange.map(answer));
        differing("", real_answer.as_ref(), our_answer.as_ref(), &mut places);
        found.extend(places.into_iter().map(|(path, real_value, our_value)| Difference {
            scenario: real.scenario.clone(),
            step,
            request: request.clone().unwrap_or_default(),
            path,
            real: real_value,
            ours: our_value,
        }));
    }
    found
}

fn answer(exchange: &Exchange) -> Value {
    json!({ "status": exchange.status, "headers": exchange.headers, "body": exchange.body })
}

type Place = (String, Option<Value>, Option<Value>);

fn differing(path: &str, real: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Place>) {
    match (real, ours) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                differing(&format!("{path}/{escaped}"), left.get(key), right.get(key), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                differing(&format!("{path}/{index}"), left.get(index), right.get(index), found);
            }
        }
        (left, right) if left == right => {}
        (left, right) => found.push((path.to_owned(), left.cloned(), right.cloned())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn recording(body: Value) -> Recording {
        let exchange = Exchange { step: 1, request: "GET /".into(), status: 200, headers: BTreeMap::default(), body };
        Recording { scenario: "area/name".into(), exchanges: vec![exchange] }
    }

    #[test]
    fn a_difference_names_its_place_and_both_values() {
        let real = recording(json!({ "a": [1, 2], "b": { "c/d": null } }));
        let ours = recording(json!({ "a": [1], "b": {} }));
        let found = compare(&real, &ours);
        let places: Vec<_> = found.iter().map(|one| (one.path.as_str(), one.real.clone(), one.ours.clone())).collect();
        assert_eq!(places, [("/body/a/1", Some(json!(2)), None), ("/body/b/c~1d", Some(Value::Null), None)]);
        assert_eq!(compare(&real, &real), []);
    }

    #[test]
    fn a_missing_step_is_a_difference() {
        let nothing = Recording { scenario: "area/name".into(), exchanges: Vec::new() };
        assert_eq!(compare(&recording(json!(1)), &nothing).len(), 1);
        assert_eq!(compare(&nothing, &recording(json!(1))).len(), 1);
    }

    #[test]
    fn known_differences_cover_what_is_below_them() {
        let found = compare(&recording(json!({ "a": { "b": 1 } })), &recording(json!({ "a": { "b": 2 } })));
        let known = |path: &str| KnownDifference {
            scenario: "area/name".into(),
            step: 1,
            path: path.into(),
            reason: "a test".into(),
        };
        assert!(unknown(found.clone(), &[known("/body/a")]).is_empty());
        assert!(stale(&[known("/body/a")], &found).is_empty());
        assert_eq!(stale(&[known("/body/b")], &found).len(), 1);
        assert_eq!(unknown(found.clone(), &[known("/body/a/bc")]).len(), 1);
        assert_eq!(unknown(found, &[]).len(), 1);
    }
}
