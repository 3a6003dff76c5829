//! The arguments of a tool call. What is wrong with them is told to the model, which can do better.

use std::ops::RangeInclusive;

use serde_json::{Number, Value};

use crate::demo::call::Stop;
use crate::demo::message::Members;

/// What a tool was called with.
#[derive(Debug, Default)]
pub(super) struct Arguments(Members);

impl From<Members> for Arguments {
    fn from(members: Members) -> Self {
        Self(members)
    }
}

impl Arguments {
    pub(super) fn text(&self, name: &str) -> Result<&str, Stop> {
        self.optional_text(name)?.ok_or_else(|| Stop::Failed(format!("the argument {name} is missing")))
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Option<&str>, Stop> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Stop::Failed(format!("the argument {name} must be a string"))),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<&Number, Stop> {
        match self.0.get(name) {
            Some(Value::Number(number)) => Ok(number),
            _ => Err(Stop::Failed(format!("the argument {name} must be a number"))),
        }
    }

    /// A whole number, or what it is when it is not given.
    pub(super) fn count(&self, name: &str, default: u64, range: RangeInclusive<u64>) -> Result<u64, Stop> {
        let value = match self.0.get(name) {
            None | Some(Value::Null) => Some(default),
            Some(value) => value.as_u64(),
        };
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            Stop::Failed(format!(
                "the argument {name} must be a whole number from {} to {}",
                range.start(),
                range.end()
            ))
        })
    }
}
