//! JSON of any depth, read to a certain depth.
//!
//! A reader that gives up on an object that is nested too deeply gives up on the list that it is in, and with that on all
//! the others. Here what is too deep is passed over, and the rest is read.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// How deep an object is read. Less than the 128 levels that JSON is read in at most, with room for the list around it.
pub(super) const LEVELS: usize = 100;

/// Reads a value, and says whether something of it was too deep; there is nothing in its place then.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Value, bool), D::Error> {
    let is_cut = Cell::new(false);
    let value = Level { left: LEVELS, is_cut: &is_cut }.deserialize(deserializer)?;
    Ok((value, is_cut.get()))
}

/// How many levels there are in a value.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[derive(Clone, Copy)]
struct Level<'a> {
    left: usize,
    is_cut: &'a Cell<bool>,
}

impl Level<'_> {
    fn below(self) -> Self {
        Self { left: self.left - 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.left > 0 {
            return deserializer.deserialize_any(self);
        }
        self.is_cut.set(true);
        deserializer.deserialize_ignored_any(IgnoredAny)?;
        Ok(Value::Null)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(self.below())? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key()? {
            read.insert(name, members.next_value_seed(self.below())?);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (Value, bool) {
        read(&mut serde_json::Deserializer::from_str(text)).unwrap()
    }

    #[test]
    fn what_is_too_deep_is_passed_over() {
        let text = r#"{"a": [true, null, -1, 1, 1.5, "x", {"b": {}}]}"#;
        assert_eq!(read_text(text), (serde_json::from_str(text).unwrap(), false));
        for (levels, is_too_deep) in [(LEVELS - 1, false), (LEVELS, true), (5_000, true)] {
            let text = format!("{{\"deep\": {}{}, \"after\": 1}}", "[".repeat(levels), "]".repeat(levels));
            let (value, is_cut) = read_text(&text);
            assert_eq!((is_cut, &value["after"]), (is_too_deep, &1.into()), "{levels}");
        }
    }
}
