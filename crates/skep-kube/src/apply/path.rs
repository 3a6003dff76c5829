//! Paths into objects, as field ownership names them.
//!
//! A path is a list of elements. An element names a member (`f:`), an item of a list by its keys (`k:`) or by its
//! value (`v:`), or, rarely, by its position (`i:`). The order of elements is the order in which the real server
//! writes them.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// A member of a map or struct.
    Field(String),
    /// An item of a list whose items are told apart by these members, sorted by name.
    Key(Vec<(String, Literal)>),
    /// An item of a list whose items are told apart by their values.
    Value(Literal),
    /// An item by its position.
    Index(i64),
}

impl PathElement {
    pub fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(formatter, "[{}]", keys.join(","))
            }
            Self::Value(value) => write!(formatter, "[={value}]"),
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// A path as messages show it: `.spec.ports[port=80,protocol="TCP"].name`.
pub(super) fn shown(path: &[PathElement]) -> String {
    path.iter().map(PathElement::to_string).collect()
}

/// A JSON value that can stand in a path. Equal numbers are equal however they are written.
#[derive(Debug, Clone)]
pub struct Literal(pub Value);

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        compare_values(&self.0, &other.0) == Ordering::Equal
    }
}

impl Eq for Literal {}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// Whether two values are the same to field ownership: `1` and `1.0` are.
pub(super) fn same_value(left: &Value, right: &Value) -> bool {
    compare_values(left, right) == Ordering::Equal
}

/// Numbers, then strings, booleans, lists, maps and null.
fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            first_difference(left.iter().zip(right).map(|(left, right)| compare_values(left, right)))
                .then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            first_difference(left.iter().zip(right).map(|((left_name, left), (right_name, right))| {
                left_name.cmp(right_name).then_with(|| compare_values(left, right))
            }))
            .then(left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| *order != Ordering::Equal).unwrap_or(Ordering::Equal)
}

const fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Exact, so that the order stays an order even where floating point cannot tell integers apart.
fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_whole_with_float(left, float(right)),
        (None, Some(right)) => compare_whole_with_float(right, float(left)).reverse(),
        (None, None) => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

// The cast saturates, and every saturated value lies far outside of the integers it is compared with.
#[allow(clippy::cast_possible_truncation)]
fn compare_whole_with_float(whole: i128, float: f64) -> Ordering {
    let floor = float.floor();
    let order = whole.cmp(&(floor as i128));
    if order == Ordering::Equal && float > floor { Ordering::Less } else { order }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        assert!(same_value(&json!(1), &json!(1.0)));
        assert!(same_value(&json!({ "a": [2.0] }), &json!({ "a": [2] })));
        assert!(!same_value(&json!(9_007_199_254_740_993_i64), &json!(9_007_199_254_740_992.0)));
        assert_eq!(compare_values(&json!(80), &json!(443)), Ordering::Less);
        assert_eq!(compare_values(&json!(1.5), &json!(1)), Ordering::Greater);
        assert_eq!(compare_values(&json!(1e300), &json!(u64::MAX)), Ordering::Greater);
    }

    #[test]
    fn a_path_reads_as_the_real_server_writes_it() {
        let path = [
            PathElement::field("spec"),
            PathElement::Key(vec![("port".into(), Literal(json!(80))), ("protocol".into(), Literal(json!("TCP")))]),
            PathElement::Value(Literal(json!("a\"b"))),
            PathElement::Index(3),
        ];
        assert_eq!(shown(&path), r#".spec[port=80,protocol="TCP"][="a\"b"][3]"#);
    }
}
