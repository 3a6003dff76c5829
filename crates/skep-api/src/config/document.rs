//! How configuration documents are read and written.
//!
//! The reference reads them with Go's JSON package, whose rules serde's derive cannot express together:
//! - `null` is the same as an absent member, everywhere, also inside lists and maps;
//! - member names match in any letter case;
//! - a member is either always written or left out when it is empty.
//!
//! To these Skep adds one: members it does not know survive, at every level. So objects are declared with [`object!`]
//! and texts with a few known values with [`word!`]. Errors name the place in the document and never the value there,
//! which may be a secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::strangers::Search;
use crate::duration::DurationText;
use crate::raw::{RawObject, RawValue};
use crate::sensitive::Sensitive;

/// A value that does not fit its place in a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}expected {expected}, found {found}", if .path.is_empty() { "" } else { ": " })]
pub struct Misfit {
    /// Where, such as `middleware_configs[2].type`; empty for the whole document.
    pub path: String,
    pub expected: &'static str,
    pub found: &'static str,
}

impl Misfit {
    pub fn new(expected: &'static str, found: &Value) -> Self {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "another number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Self { path: String::new(), expected, found }
    }

    fn below(mut self, parent: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{parent}{separator}{}", self.path);
        self
    }
}

/// Something that stands in a document. Its default is what an absent or null member means.
pub trait Part: Default {
    /// Reads a value that is not null.
    fn from_value(value: Value) -> Result<Self, Misfit>;

    /// Finds the members in it that nobody declared. What may have members of any name has none of these.
    fn find_strangers(&self, _: &mut Search) {}
}

/// Reads a part; null gives the default.
pub fn read<T: Part>(value: Value) -> Result<T, Misfit> {
    if value.is_null() { Ok(T::default()) } else { T::from_value(value) }
}

/// For derived types, with `deserialize_with`: null in place of a list or a map is the same as an empty one.
pub(crate) fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a member that is left out when empty is empty.
pub(crate) fn is_empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The members of an object that have not been read yet.
pub(crate) struct Members(Map<String, Value>);

impl Members {
    pub(crate) fn of(value: Value) -> Result<Self, Misfit> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            value => Err(Misfit::new("an object", &value)),
        }
    }

    pub(crate) fn take<T: Part>(&mut self, name: &str) -> Result<T, Misfit> {
        read(self.remove(name).unwrap_or_default()).map_err(|misfit| misfit.below(name))
    }

    /// Takes all spellings of a name out. The reference lets the last one in the document win; here the order of members
    /// means nothing, so the exact name wins, then the first of the others by name. The losers are dropped, because one
    /// that was kept as unknown could win when the document is read again. As null is absent it never wins over a value.
    fn remove(&mut self, name: &str) -> Option<Value> {
        let exact = self.0.remove(name);
        let mut spellings: Vec<String> = self.spellings(name).cloned().collect();
        spellings.sort_unstable();
        let others = spellings.iter().filter_map(|spelling| self.0.remove(spelling));
        let values: Vec<Value> = exact.into_iter().chain(others).collect();
        values.into_iter().find(|value| !value.is_null())
    }

    fn spellings(&self, name: &str) -> impl Iterator<Item = &String> {
        self.0.keys().filter(move |key| key.eq_ignore_ascii_case(name))
    }

    /// Gives a member another name, unless that one is taken.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        if self.spellings(to).next().is_none()
            && let Some(value) = self.remove(from)
        {
            self.0.insert(to.to_owned(), value);
        }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// In the order of their names: equal documents have equal texts.
    pub(crate) fn rest(mut self) -> RawObject {
        self.0.sort_keys();
        self.0.values_mut().for_each(Value::sort_all_objects);
        RawObject(self.0)
    }
}

impl Part for RawValue {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        Ok(Self(value))
    }
}

impl Part for String {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        match value {
            Value::String(text) => Ok(text),
            value => Err(Misfit::new("a text", &value)),
        }
    }
}

impl Part for Sensitive {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        String::from_value(value).map(Self)
    }
}

impl Part for DurationText {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        String::from_value(value).map(Self)
    }
}

impl Part for bool {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        value.as_bool().ok_or_else(|| Misfit::new("true or false", &value))
    }
}

impl Part for i64 {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        value.as_i64().ok_or_else(|| Misfit::new("a whole number of 64 bits", &value))
    }
}

impl Part for i32 {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        let number = value.as_i64().and_then(|number| number.try_into().ok());
        number.ok_or_else(|| Misfit::new("a whole number of 32 bits", &value))
    }
}

impl<T: Part> Part for Option<T> {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        T::from_value(value).map(Some)
    }

    fn find_strangers(&self, search: &mut Search) {
        if let Some(part) = self {
            part.find_strangers(search);
        }
    }
}

impl<T: Part> Part for Vec<T> {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        let Value::Array(items) = value else {
            return Err(Misfit::new("a list", &value));
        };
        let read_item = |(index, item)| read(item).map_err(|misfit| misfit.below(&format!("[{index}]")));
        items.into_iter().enumerate().map(read_item).collect()
    }

    fn find_strangers(&self, search: &mut Search) {
        for (index, part) in self.iter().enumerate() {
            search.below(&format!("[{index}]"), |search| part.find_strangers(search));
        }
    }
}

impl<T: Part> Part for BTreeMap<String, T> {
    fn from_value(value: Value) -> Result<Self, Misfit> {
        let Value::Object(members) = value else {
            return Err(Misfit::new("an object", &value));
        };
        let read_member = |(name, member): (String, Value)| match read(member) {
            Ok(part) => Ok((name, part)),
            Err(misfit) => Err(misfit.below(&name)),
        };
        members.into_iter().map(read_member).collect()
    }

    fn find_strangers(&self, search: &mut Search) {
        for (name, part) in self {
            search.below(name, |search| part.find_strangers(search));
        }
    }
}

/// Declares an object of a document. Each member is `always name: Type` or `omit name: Type` (left out when empty),
/// with `= "wireName"` where the wire has another name, and is `null` when always written and `None`. Every object
/// also gets `other`, the members that are not declared. `from function` names a step that runs before the members
/// are read, `beyond function` one that looks for strangers in members that are carried as they are.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident $(from $prepare:ident)? $(beyond $look:ident)? {
            $( $(#[$member_meta:meta])* $mode:ident $member:ident: $type:ty $(= $wire:literal)?, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Default, PartialEq, Eq)]
        $visibility struct $name {
            $( $(#[$member_meta])* pub $member: $type, )*
            /// The members that are not declared here. They are written as they were read.
            pub other: $crate::raw::RawObject,
        }

        impl $name {
            /// The declared members, by their names on the wire.
            $visibility const MEMBERS: &[&str] = &[$( $crate::config::document::wire!($member $($wire)?) ),*];
        }

        impl $crate::config::document::Part for $name {
            fn from_value(value: serde_json::Value) -> Result<Self, $crate::config::document::Misfit> {
                #[allow(unused_mut, reason = "an object without members takes none")]
                let mut members = $crate::config::document::Members::of(value)?;
                $( $prepare(&mut members); )?
                Ok(Self {
                    $( $member: members.take($crate::config::document::wire!($member $($wire)?))?, )*
                    other: members.rest(),
                })
            }

            fn find_strangers(&self, search: &mut $crate::config::strangers::Search) {
                search.note(self.other.0.keys(), Self::MEMBERS);
                $(
                    let name = $crate::config::document::wire!($member $($wire)?);
                    search.below(name, |search| self.$member.find_strangers(search));
                )*
                $( $look(self, search); )?
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(deserializer)?;
                $crate::config::document::read(value).map_err(serde::de::Error::custom)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut members = serializer.serialize_map(None)?;
                $(
                    if $crate::config::document::is_written!($mode &self.$member) {
                        members.serialize_entry($crate::config::document::wire!($member $($wire)?), &self.$member)?;
                    }
                )*
                for (name, value) in &self.other.0 {
                    members.serialize_entry(name, value)?;
                }
                members.end()
            }
        }

        /// Empty members are left out.
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut members = formatter.debug_struct(stringify!($name));
                $(
                    if $crate::config::document::is_written!($mode &self.$member) {
                        members.field(stringify!($member), &self.$member);
                    }
                )*
                if !self.other.is_empty() {
                    members.field("other", &self.other);
                }
                members.finish()
            }
        }
    };
}

macro_rules! wire {
    ($member:ident) => {
        stringify!($member)
    };
    ($member:ident $wire:literal) => {
        $wire
    };
}

macro_rules! is_written {
    (always $member:expr) => {
        true
    };
    (omit $member:expr) => {
        !$crate::config::document::is_empty($member)
    };
}

/// Declares a text with some known values. Others are kept as `Other`; whoever uses the value decides about them.
/// The default is the empty text, which means unset.
macro_rules! word {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $( $(#[$variant_meta])* $variant, )*
            /// Any other text, the empty one included.
            Other(String),
        }

        impl $name {
            /// All texts that are known.
            #[allow(dead_code, reason = "not all of them are told to somebody")]
            $visibility const KNOWN: &[&str] = &[$( $text ),*];

            $visibility fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )*
                    Self::Other(text) => text,
                }
            }

            $visibility fn is_unset(&self) -> bool {
                self.as_str().is_empty()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $text => Self::$variant, )*
                    text => Self::Other(text.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::config::document::Part for $name {
            fn from_value(value: serde_json::Value) -> Result<Self, $crate::config::document::Misfit> {
                String::from_value(value).map(|text| Self::from(text.as_str()))
            }
        }
    };
}

pub(crate) use {is_written, object, wire, word};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    word! {
        /// A colour.
        enum Colour { Red = "red", }
    }

    object! {
        /// A leaf.
        struct Leaf {
            always colour: Colour,
            always veins: Option<Vec<String>> = "Veins",
            omit key: Sensitive,
        }
    }

    object! {
        /// A tree.
        struct Tree {
            omit height: i32,
            omit leaves: Vec<Leaf>,
        }
    }

    #[test]
    fn null_is_absent_at_every_depth() {
        let tree: Tree = read(json!({ "height": null, "leaves": [null, { "Veins": ["a", null] }] })).unwrap();
        assert_eq!(tree.height, 0);
        assert_eq!(tree.leaves[0], Leaf::default());
        assert_eq!(tree.leaves[1].veins, Some(vec!["a".to_owned(), String::new()]));
    }

    #[test]
    fn names_match_in_any_letters_and_the_exact_one_wins() {
        let leaf: Leaf = read(json!({ "COLOUR": "red", "veins": ["b"], "Veins": ["a"] })).unwrap();
        assert!(leaf.colour == Colour::Red && !leaf.colour.is_unset());
        assert_eq!(leaf.veins, Some(vec!["a".to_owned()]));
        assert!(leaf.other.is_empty());
    }

    #[test]
    fn a_spelling_that_lost_does_not_come_back() {
        for (document, height) in [
            (json!({ "height": 0, "HEIGHT": 7 }), 0),
            (json!({ "Height": 1, "HEIGHT": 7 }), 7),
            (json!({ "height": null, "Height": 3, "HEIGHT": null }), 3),
            (json!({ "height": null, "HEIGHT": null }), 0),
        ] {
            let tree: Tree = read(document.clone()).unwrap();
            assert!(tree.height == height && tree.other.is_empty(), "{document}");
            assert_eq!(read::<Tree>(serde_json::to_value(&tree).unwrap()).unwrap(), tree, "{document}");
        }
    }

    #[test]
    fn writes_what_is_always_written_and_leaves_out_the_rest() {
        assert_eq!(serde_json::to_value(Tree::default()).unwrap(), json!({}));
        assert_eq!(serde_json::to_value(Leaf::default()).unwrap(), json!({ "colour": "", "Veins": null }));
    }

    #[test]
    fn errors_name_the_place_and_not_the_value() {
        let document = json!({ "leaves": [{}, { "Veins": ["x", { "secret": "hunter2" }] }] });
        let misfit = read::<Tree>(document).unwrap_err();
        assert_eq!(misfit.to_string(), "leaves[1].Veins[1]: expected a text, found an object");
        assert_eq!(read::<Tree>(json!(["hunter2"])).unwrap_err().to_string(), "expected an object, found a list");
    }

    #[test]
    fn debug_shows_no_secret() {
        let leaf: Leaf = read(json!({ "colour": "blue", "key": "hunter2", "password": "hunter2" })).unwrap();
        let text = format!("{leaf:?}");
        assert!(text.contains("blue") && text.contains("password") && !text.contains("hunter2"), "{text}");
    }
}
