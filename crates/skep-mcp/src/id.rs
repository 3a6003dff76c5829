//! What a request is known by, exactly as its sender wrote it.

use crate::json;

/// The id of a request: a string or a number, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(Box<str>);

impl Id {
    /// An id from its JSON.
    pub(crate) fn new(json: &str) -> Self {
        Self(json.into())
    }

    /// The id as it was written, with its quotes if it is a string.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Whether this JSON means the same id. A number is never a string, and numbers are compared as they are written.
    pub fn means(&self, json: &str) -> bool {
        *self.0 == *json || (self.0.starts_with('"') && json::decode(&self.0) == json::decode(json))
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_when_they_mean_the_same() {
        assert!(Id::new("\"a\"").means("\"\\u0061\""));
        assert!(Id::from(1).means("1"));
        assert!(!Id::from(1).means("\"1\""));
        assert!(!Id::new("\"\\ud800\"").means("\"b\""));
    }
}
