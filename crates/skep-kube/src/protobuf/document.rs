//! Documents that are still text. The items of a list become messages one by one, so that a list of thousands of objects
//! is not in memory as a tree.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::EncodeError;
use super::encode;
use super::envelope::{self, find};
use super::messages::{Kind, Message, Messages, Type};
use super::wire::put_nested;

const ITEMS: &str = "items";

/// Writes an object that is a JSON document. It says what it is before it lists any items.
pub fn encode_json(document: &[u8]) -> Result<Vec<u8>, EncodeError> {
    let mut reader = serde_json::Deserializer::from_slice(document);
    let Read { members, items } =
        reader.deserialize_map(Document).map_err(|error| EncodeError::Document(error.to_string()))?;
    envelope::encode_with(&Value::Object(members), &items)
}

/// A document of which the items are messages already.
#[derive(Default)]
struct Read {
    members: Map<String, Value>,
    items: Vec<u8>,
}

struct Document;

impl<'de> Visitor<'de> for Document {
    type Value = Read;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Read, A::Error> {
        let mut read = Read::default();
        while let Some(name) = access.next_key::<String>()? {
            match Items::of(&name, &read.members) {
                Some(items) => read.items = access.next_value_seed(items)?,
                None => drop(read.members.insert(name, access.next_value()?)),
            }
        }
        Ok(read)
    }
}

/// The items of a list of a known kind.
struct Items {
    number: u32,
    message: &'static Message,
}

impl Items {
    fn of(name: &str, members: &Map<String, Value>) -> Option<Self> {
        let text = |member: &str| members.get(member).and_then(Value::as_str);
        if name != ITEMS {
            return None;
        }
        let list = find(text("apiVersion")?, text("kind")?)?;
        let field = list.fields.iter().find(|field| field.member == ITEMS)?;
        let Kind::List(Type::Message(index)) = field.kind else { return None };
        Some(Self { number: field.number, message: Messages::get().at(index) })
    }
}

impl<'de> DeserializeSeed<'de> for Items {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u8>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<Vec<u8>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Vec<u8>, A::Error> {
        let mut output = Vec::new();
        while let Some(item) = access.next_element::<Value>()? {
            put_nested(&mut output, self.number, |output| encode::object(self.message, &item, output))
                .map_err(A::Error::custom)?;
        }
        Ok(output)
    }
}
