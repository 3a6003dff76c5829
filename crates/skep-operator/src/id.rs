//! The name of an object among all kinds.

use std::fmt;

use skep_api::kind::Kind;
use skep_control::Key;

/// Kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    pub kind: &'static str,
    pub key: Key,
}

impl ObjectId {
    pub fn new(kind: &'static str, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, key: Key::new(namespace, name) }
    }

    /// The name of an object of one of our kinds.
    pub fn of<K: Kind>(key: Key) -> Self {
        Self { kind: K::DEFINITION.kind, key }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.key)
    }
}
