//! The conditions of a definition.

use serde_json::{Value, json};

use super::super::write::now;

pub const NAMES_ACCEPTED: &str = "NamesAccepted";
pub const ESTABLISHED: &str = "Established";
pub const TERMINATING: &str = "Terminating";

/// One condition as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub type_: &'static str,
    pub holds: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Condition {
    pub fn new(type_: &'static str, holds: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, holds, reason, message: message.into() }
    }

    /// Whether a definition says so already.
    pub fn is_said_by(&self, definition: &Value) -> bool {
        let status = if self.holds { "True" } else { "False" };
        find(definition, self.type_).is_some_and(|found| {
            found["status"] == status && found["reason"] == self.reason && found["message"] == self.message.as_str()
        })
    }

    /// Puts the condition into a definition. Its time is that of the last change of its status.
    pub fn set(&self, definition: &mut Value) {
        let status = if self.holds { "True" } else { "False" };
        let before = find(definition, self.type_).filter(|before| before["status"] == status);
        let since = before.map_or_else(|| now().into(), |before| before["lastTransitionTime"].clone());
        let condition = json!({
            "type": self.type_, "status": status, "reason": self.reason, "message": self.message,
            "lastTransitionTime": since,
        });
        let conditions = &mut definition["status"]["conditions"];
        if !conditions.is_array() {
            *conditions = json!([]);
        }
        let Some(conditions) = conditions.as_array_mut() else {
            return;
        };
        match conditions.iter_mut().find(|found| found["type"] == self.type_) {
            Some(found) => *found = condition,
            None => conditions.push(condition),
        }
    }
}

/// Whether a condition is there and true.
pub fn holds(definition: &Value, type_: &str) -> bool {
    find(definition, type_).is_some_and(|condition| condition["status"] == "True")
}

pub fn find<'a>(definition: &'a Value, type_: &str) -> Option<&'a Value> {
    definition["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}
