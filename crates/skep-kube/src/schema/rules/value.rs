//! Values as expressions see them, and when two of them are equal.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, FixedOffset};
use kube_cel::cel::objects::{AsKeyRef, Key, KeyRef, Opaque};

use super::list::List;

/// The value of an expression, or of a part of it.
#[derive(Clone)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<String>),
    Bytes(Arc<Vec<u8>>),
    List(Arc<List>),
    /// Maps and objects alike.
    Map(Arc<Entries>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(DateTime<FixedOffset>),
    Optional(Option<Box<Value>>),
    /// A type, by its name.
    Type(&'static str),
    /// What only some functions know: addresses, quantities, versions, formats and others.
    Foreign(Arc<dyn Opaque>),
}

pub(super) type Entries = BTreeMap<Key, Value>;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Something was asked of a value that values of its type cannot do.
    NoOverload,
    /// In the words of the server.
    Told(String),
}

pub(super) type Outcome = Result<Value, Failure>;

impl Failure {
    pub(super) fn told(words: impl Into<String>) -> Self {
        Self::Told(words.into())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::NoOverload => "no such overload",
            Self::Told(words) => words,
        })
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Arc::new(text))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Vec<Self>> for Value {
    fn from(items: Vec<Self>) -> Self {
        Self::List(Arc::new(List::plain(items)))
    }
}

impl From<Entries> for Value {
    fn from(entries: Entries) -> Self {
        Self::Map(Arc::new(entries))
    }
}

impl Value {
    pub(super) fn some(value: Self) -> Self {
        Self::Optional(Some(Box::new(value)))
    }

    /// The key of a map that a value can be.
    pub(super) fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Bool(flag) => Key::Bool(*flag),
            Self::Int(number) => Key::Int(*number),
            Self::Uint(number) => Key::Uint(*number),
            Self::Text(text) => Key::String(text.clone()),
            _ => return None,
        })
    }

    pub(super) fn of_key(key: &Key) -> Self {
        match key {
            Key::Bool(flag) => Self::Bool(*flag),
            Key::Int(number) => Self::Int(*number),
            Key::Uint(number) => Self::Uint(*number),
            Key::String(text) => Self::Text(text.clone()),
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Foreign(_) => "other",
        }
    }

    /// What the server, a Go program, calls the type.
    pub(super) fn go_name(&self) -> &'static str {
        match self {
            Self::Null => "Null",
            Self::Bool(_) => "Bool",
            Self::Int(_) => "Int",
            Self::Uint(_) => "Uint",
            Self::Double(_) => "Double",
            Self::Text(_) => "String",
            Self::Bytes(_) => "Bytes",
            Self::Duration(_) => "Duration",
            Self::Timestamp(_) => "Timestamp",
            _ => "Val",
        }
    }

    /// About how many steps looking at all of a value takes.
    pub(super) fn weight(&self) -> u64 {
        let size = match self {
            Self::Text(text) => text.len() / 10,
            Self::Bytes(bytes) => bytes.len() / 10,
            Self::List(list) => list.items.len(),
            Self::Map(entries) => entries.len(),
            _ => 0,
        };
        u64::try_from(size).unwrap_or(u64::MAX)
    }

    /// Whether it is what a value of its type is without being given.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null
            | Self::Bool(false)
            | Self::Int(0)
            | Self::Uint(0)
            | Self::Duration(0)
            | Self::Optional(None) => true,
            Self::Double(number) => *number == 0.0,
            Self::Text(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Map(entries) => entries.is_empty(),
            _ => false,
        }
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) | (Self::Optional(None), Self::Optional(None)) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            (Self::Duration(one), Self::Duration(other)) => one == other,
            (Self::Timestamp(one), Self::Timestamp(other)) => one == other,
            (Self::Type(one), Self::Type(other)) => one == other,
            (Self::List(one), Self::List(other)) => one.equals(other),
            (Self::Map(one), Self::Map(other)) => {
                let same = |(key, value): (&Key, &Self)| entry(other, key).is_some_and(|other| value.equals(other));
                one.len() == other.len() && one.iter().all(same)
            }
            (Self::Optional(Some(one)), Self::Optional(Some(other))) => one.equals(other),
            (Self::Foreign(one), Self::Foreign(other)) => one.opaque_eq(other.as_ref()),
            _ => one_number(self, other) == Some(Ordering::Equal),
        }
    }

    /// Which of two values comes first. Nothing when they have no order.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => Some(one.cmp(other)),
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            (Self::Bytes(one), Self::Bytes(other)) => Some(one.cmp(other)),
            (Self::Duration(one), Self::Duration(other)) => Some(one.cmp(other)),
            (Self::Timestamp(one), Self::Timestamp(other)) => Some(one.cmp(other)),
            _ => one_number(self, other),
        }
    }
}

/// Numbers of different types are compared by what they count.
#[expect(clippy::cast_precision_loss, reason = "as the server compares whole numbers with others")]
fn one_number(one: &Value, other: &Value) -> Option<Ordering> {
    let whole = |value: &Value| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::Uint(number) => Some(i128::from(*number)),
        _ => None,
    };
    let broken = |value: &Value| match value {
        Value::Double(number) => Some(*number),
        _ => whole(value).map(|number| number as f64),
    };
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => broken(one)?.partial_cmp(&broken(other)?),
    }
}

/// The entry of a map. Whole numbers are the same key with and without a sign.
pub(super) fn entry<'a>(entries: &'a Entries, key: &Key) -> Option<&'a Value> {
    let other = || match key {
        Key::Int(number) => entries.get(&Key::Uint(u64::try_from(*number).ok()?)),
        Key::Uint(number) => entries.get(&Key::Int(i64::try_from(*number).ok()?)),
        _ => None,
    };
    entries.get(key).or_else(other)
}

/// The member of an object.
pub(super) fn member<'a>(entries: &'a Entries, name: &str) -> Option<&'a Value> {
    entries.get(&KeyRef::String(name) as &dyn AsKeyRef)
}
