//! Conditions: what a controller knows about an object, in the form `kubectl wait` understands.
//!
//! [`set`] is the only way to change one. It keeps the transition time while the status stays the same, and it
//! tells the caller whether anything but a timestamp changed, so that a quiet controller writes nothing.

pub mod reasons;
pub mod types;

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    True,
    False,
    #[default]
    Unknown,
}

/// One statement about the object, made by the controller that owns its status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// When `status` last changed from one value to another.
    pub last_transition_time: Time,
    /// A sentence for people: what was found, and what to do about it.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// The `metadata.generation` that this statement is about. When it is older than the object's generation,
    /// the statement may be out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// A single CamelCase word for programs: why `status` is what it is.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// Whether the statement holds: True, False or Unknown.
    pub status: ConditionStatus,
    /// What the statement is about, for example Ready or Valid. An object has at most one condition of a type.
    #[serde(rename = "type")]
    #[schemars(
        length(max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
        )
    )]
    pub type_: String,
}

/// A condition as a check states it, before it is merged into an object's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub type_: Name,
    pub status: ConditionStatus,
    pub reason: Name,
    pub message: String,
}

impl Statement {
    pub fn holds(type_: impl Into<Name>, reason: impl Into<Name>, message: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::True, reason, message)
    }

    pub fn fails(type_: impl Into<Name>, reason: impl Into<Name>, message: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::False, reason, message)
    }

    pub fn unknown(type_: impl Into<Name>, reason: impl Into<Name>, message: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::Unknown, reason, message)
    }

    pub fn new(
        type_: impl Into<Name>,
        status: ConditionStatus,
        reason: impl Into<Name>,
        message: impl Into<String>,
    ) -> Self {
        Self { type_: type_.into(), status, reason: reason.into(), message: message.into() }
    }
}

/// A type or a reason: nearly always a constant, sometimes made from a backend's name or copied from another object.
pub type Name = Cow<'static, str>;

/// Longest message the schema accepts, in characters.
const MESSAGE_LIMIT: usize = 32_768;

/// Puts a statement about generation `generation` into the list and says whether the list changed.
///
/// The transition time moves to `now` only when the status differs from what it was; a statement that is there
/// already, apart from its time, changes nothing.
pub fn set(conditions: &mut Vec<Condition>, statement: Statement, generation: Option<i64>, now: &Time) -> bool {
    let mut message = statement.message;
    if let Some((limit, _)) = message.char_indices().nth(MESSAGE_LIMIT) {
        message.truncate(limit);
    }
    let desired = Condition {
        last_transition_time: now.clone(),
        message,
        observed_generation: generation,
        reason: statement.reason.into_owned(),
        status: statement.status,
        type_: statement.type_.into_owned(),
    };
    let Some(existing) = conditions.iter_mut().find(|condition| condition.type_ == desired.type_) else {
        conditions.push(desired);
        return true;
    };
    let transition =
        if existing.status == desired.status { existing.last_transition_time.clone() } else { now.clone() };
    let desired = Condition { last_transition_time: transition, ..desired };
    if *existing == desired {
        return false;
    }
    *existing = desired;
    true
}

/// Removes the condition of a type and says whether there was one.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != before
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of a type is present and true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// Whether two lists say the same, transition times and order aside.
pub fn same_statements(one: &[Condition], other: &[Condition]) -> bool {
    one.len() == other.len()
        && one.iter().all(|condition| {
            find(other, &condition.type_).is_some_and(|twin| {
                *twin == Condition { last_transition_time: twin.last_transition_time.clone(), ..condition.clone() }
            })
        })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    const READY: &str = "Ready";

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn ready(message: &str) -> Statement {
        Statement::holds(READY, "Running", message)
    }

    #[test]
    fn first_statement_is_added_with_generation_and_time() {
        let mut list = Vec::new();
        assert!(set(&mut list, ready("up"), Some(3), &at(10)));
        assert_eq!(list[0].observed_generation, Some(3));
        assert_eq!(list[0].last_transition_time, at(10));
    }

    #[test]
    fn the_same_statement_later_is_no_change() {
        let mut list = Vec::new();
        set(&mut list, ready("up"), Some(3), &at(10));
        let before = list.clone();
        assert!(!set(&mut list, ready("up"), Some(3), &at(99)));
        assert_eq!(list, before);
    }

    #[test]
    fn a_new_message_or_generation_keeps_the_transition_time() {
        let mut list = Vec::new();
        set(&mut list, ready("up"), Some(3), &at(10));
        assert!(set(&mut list, ready("up and well"), Some(3), &at(20)));
        assert!(set(&mut list, ready("up and well"), Some(4), &at(30)));
        assert_eq!(list[0].last_transition_time, at(10));
    }

    #[test]
    fn a_new_status_moves_the_transition_time() {
        let mut list = Vec::new();
        set(&mut list, ready("up"), Some(3), &at(10));
        assert!(set(&mut list, Statement::fails(READY, "Crashed", "down"), Some(3), &at(20)));
        assert_eq!(list[0].last_transition_time, at(20));
        assert!(!is_true(&list, READY));
    }

    #[test]
    fn other_types_are_left_alone_and_removal_says_what_it_did() {
        let mut list = Vec::new();
        set(&mut list, ready("up"), Some(1), &at(1));
        set(&mut list, Statement::unknown("Valid", "Pending", ""), Some(1), &at(1));
        assert!(remove(&mut list, READY));
        assert!(!remove(&mut list, READY));
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn lists_that_differ_in_time_and_order_say_the_same() {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        set(&mut one, ready("up"), Some(1), &at(1));
        set(&mut one, Statement::unknown("Valid", "Pending", ""), Some(1), &at(1));
        set(&mut other, Statement::unknown("Valid", "Pending", ""), Some(1), &at(5));
        set(&mut other, ready("up"), Some(1), &at(7));
        assert!(same_statements(&one, &other));
        set(&mut other, ready("down?"), Some(1), &at(7));
        assert!(!same_statements(&one, &other));
    }

    #[test]
    fn an_overlong_message_is_cut_at_a_character() {
        let mut list = Vec::new();
        set(&mut list, ready(&"ü".repeat(MESSAGE_LIMIT + 5)), Some(1), &at(1));
        assert_eq!(list[0].message.chars().count(), MESSAGE_LIMIT);
    }
}
