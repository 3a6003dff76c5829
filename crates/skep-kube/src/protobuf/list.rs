//! Lists, of which the items become messages one by one: a list of thousands of objects is not in memory as a tree.

use serde_json::Value;

use super::EncodeError;
use super::encode;
use super::envelope::{self, find};
use super::messages::{Kind, Message, Messages, Type};
use super::wire::put_nested;

const ITEMS: &str = "items";

/// A list on its way to a message.
#[derive(Debug)]
pub struct ListMessage<'a> {
    /// The list without its items.
    head: &'a Value,
    number: u32,
    item: &'static Message,
}

impl<'a> ListMessage<'a> {
    pub fn new(head: &'a Value) -> Result<Self, EncodeError> {
        let list = find(head)?;
        let items = list.fields.iter().find_map(|field| match field.kind {
            Kind::List(Type::Message(index)) if field.member == ITEMS => Some((field.number, index)),
            _ => None,
        });
        let (number, index) = items.ok_or_else(|| EncodeError::Document(format!("{} is no list", list.name)))?;
        Ok(Self { head, number, item: Messages::get().at(index) })
    }

    /// Appends an item, which is a JSON document.
    pub fn put_item(&self, document: &[u8], output: &mut Vec<u8>) -> Result<(), EncodeError> {
        let item: Value = envelope::parse(document)?;
        put_nested(output, self.number, |output| encode::object(self.item, &item, output))
    }

    /// What stands before and after items of so many bytes.
    pub fn around(&self, items: usize) -> Result<(Vec<u8>, Vec<u8>), EncodeError> {
        envelope::around(self.head, items)
    }
}
