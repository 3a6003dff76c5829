//! Follows paths through values.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, End, Filter, JsonPath, Operand, Slice, Step};

/// Several `..` in one path multiply their results; somewhere it must end.
const MAX_RESULTS: usize = 100_000;

/// Why a path leads nowhere. A member that is not there is no error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds { index: i64, length: usize },
    #[error("starting index {start} is greater than ending index {end}")]
    Backwards { start: i64, end: i64 },
    #[error("step must be > 0")]
    Step,
    #[error("{0} is not array or slice")]
    NotAList(&'static str),
    #[error("can only compare one element at a time")]
    SeveralElements,
    #[error("incompatible types for comparison")]
    Incomparable,
    #[error("more than {MAX_RESULTS} results")]
    TooMany,
}

impl JsonPath {
    /// All values at the path; none if it leads nowhere.
    pub fn evaluate<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.try_evaluate(value).unwrap_or_default()
    }

    /// As `evaluate`, telling a place that is not there from one that cannot be.
    pub fn try_evaluate<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, EvaluationError> {
        follow(&self.steps, vec![value])
    }
}

fn follow<'a>(steps: &[Step], mut values: Vec<&'a Value>) -> Result<Vec<&'a Value>, EvaluationError> {
    for step in steps {
        values = advance(step, values)?;
        if values.len() > MAX_RESULTS {
            return Err(EvaluationError::TooMany);
        }
    }
    Ok(values)
}

fn advance<'a>(step: &Step, values: Vec<&'a Value>) -> Result<Vec<&'a Value>, EvaluationError> {
    let mut results = Vec::new();
    match step {
        Step::Member(name) => results.extend(values.into_iter().filter_map(|value| value.as_object()?.get(name))),
        Step::Wildcard => {
            for value in values {
                results.extend(children(value));
            }
        }
        Step::Recursive => {
            for value in values {
                collect(value, &mut results)?;
            }
        }
        Step::Slice(slice) => {
            for value in values {
                slice.take(value, &mut results)?;
            }
        }
        Step::Union(alternatives) => {
            for alternative in alternatives {
                results.extend(follow(alternative, values.clone())?);
            }
        }
        Step::Filter(filter) => {
            for value in values {
                let Value::Array(items) = value else { return Err(EvaluationError::NotAList(go_type(value))) };
                for item in items {
                    if filter.holds(item)? {
                        results.push(item);
                    }
                }
            }
        }
    }
    Ok(results)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The value itself and all below it, parents first.
fn collect<'a>(value: &'a Value, results: &mut Vec<&'a Value>) -> Result<(), EvaluationError> {
    if results.len() > MAX_RESULTS {
        return Err(EvaluationError::TooMany);
    }
    results.push(value);
    children(value).try_for_each(|child| collect(child, results))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

impl Slice {
    fn take<'a>(&self, value: &'a Value, results: &mut Vec<&'a Value>) -> Result<(), EvaluationError> {
        let Value::Array(items) = value else {
            // Nothing has no items.
            return if value.is_null() { Ok(()) } else { Err(EvaluationError::NotAList(go_type(value))) };
        };
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let from_end = |place: i64| if place < 0 { place.saturating_add(length) } else { place };
        let start = from_end(self.start.unwrap_or_default());
        let end = match self.end {
            End::One => start.saturating_add(1),
            End::Last => length,
            End::At(end) => from_end(end),
        };
        if self.end == End::Last && start == 0 && items.is_empty() {
            return Ok(());
        }
        let out_of_bounds = |index| Err(EvaluationError::OutOfBounds { index, length: items.len() });
        if start < 0 || start >= length {
            return out_of_bounds(start);
        }
        if end < 1 || end > length {
            return if start > end { Err(EvaluationError::Backwards { start, end }) } else { out_of_bounds(end - 1) };
        }
        if start > end {
            return Err(EvaluationError::Backwards { start, end });
        }
        let step = self.step.map_or(Ok(1), usize::try_from).unwrap_or_default();
        if step == 0 {
            return Err(EvaluationError::Step);
        }
        let place = |index: i64| usize::try_from(index).unwrap_or_default();
        results.extend(items[place(start)..place(end)].iter().step_by(step));
        Ok(())
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> Result<bool, EvaluationError> {
        let left = self.left.values(item)?;
        let Some((comparison, right)) = &self.comparison else { return Ok(!left.is_empty()) };
        if left.len() > 1 {
            return Err(EvaluationError::SeveralElements);
        }
        let right = right.values(item)?;
        let ([left], [right]) = (&left[..], &right[..]) else {
            return if right.len() > 1 { Err(EvaluationError::SeveralElements) } else { Ok(false) };
        };
        let ordering = compare(left, right).ok_or(EvaluationError::Incomparable)?;
        Ok(match comparison {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        })
    }
}

impl Operand {
    fn values<'a>(&'a self, item: &'a Value) -> Result<Vec<&'a Value>, EvaluationError> {
        match self {
            Self::Path(steps) => follow(steps, vec![item]),
            Self::Literal(literal) => Ok(vec![literal]),
        }
    }
}

/// Only values of the same type can be compared, and integers are of another type than other numbers.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
            _ => None,
        },
        _ => None,
    }
}
