//! From the bytes of a message to JSON.
//!
//! Go reads a message into a struct and writes the struct as JSON. So do we, without the struct: a member that is not
//! among the bytes has its zero, and shows in JSON or not as its type wants it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::DecodeError;
use super::forms::{self, delimited};
use super::messages::{Field, Kind, Message, Messages, Type};
use super::wire::{Raw, Reader};
use crate::decode::{MAX_DEPTH, decode_object};

/// What an object costs beside its members. The smallest in JSON takes about as many bytes.
const OBJECT_COST: usize = 8;
/// What every message may cost: members that are not among its bytes show all the same.
const FREE: usize = 64 * 1024;

/// The object that a message stands for.
pub fn object(message: &Message, bytes: &[u8]) -> Result<Map<String, Value>, DecodeError> {
    let mut decoder = Decoder { budget: bytes.len() + FREE, depth: 0 };
    let object = decoder.message(message, bytes)?;
    if object.values().any(|value| is_deeper_than(value, MAX_DEPTH - 1)) {
        return Err(DecodeError::TooDeep);
    }
    Ok(object)
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(members) => members.values().any(|member| is_deeper_than(member, levels - 1)),
        _ => false,
    }
}

/// What is known of a member while the bytes of its message are read.
enum Found<'a> {
    Nothing,
    Value(Value),
    /// A message. Its parts may be scattered, so it is read when all of them are there.
    Message(Cow<'a, [u8]>),
}

/// Two bytes can stand for an object with many members, so that what comes out is bounded by what went in.
struct Decoder {
    budget: usize,
    /// Messages around the one that is read.
    depth: usize,
}

impl Decoder {
    fn spend(&mut self, cost: usize) -> Result<(), DecodeError> {
        self.budget = self.budget.checked_sub(cost).ok_or(DecodeError::TooLarge)?;
        Ok(())
    }

    fn message(&mut self, message: &Message, bytes: &[u8]) -> Result<Map<String, Value>, DecodeError> {
        self.spend(OBJECT_COST)?;
        if self.depth == MAX_DEPTH {
            return Err(DecodeError::TooDeep);
        }
        self.depth += 1;
        let mut found: Vec<Found<'_>> = message.fields.iter().map(|_| Found::Nothing).collect();
        let name = message.name.rsplit('.').next().unwrap_or_default();
        let mut reader = Reader::new(bytes, name);
        while let Some((number, value)) = reader.next()? {
            let place = message.fields.binary_search_by_key(&number, |field| field.number).ok();
            if let Some((field, found)) = place.and_then(|at| message.fields.get(at).zip(found.get_mut(at))) {
                self.take(field, value, found)?;
            }
        }
        let mut object = Map::new();
        for (field, found) in message.fields.iter().zip(found) {
            self.show(field, found, &mut object)?;
        }
        self.depth -= 1;
        Ok(object)
    }

    /// Adds what one field of the message says to what is known of a member.
    fn take<'a>(&mut self, field: &Field, raw: Raw<'a>, found: &mut Found<'a>) -> Result<(), DecodeError> {
        match field.kind {
            Kind::One(Type::Message(_)) => {
                let bytes = delimited(raw, field.member)?;
                match found {
                    Found::Message(parts) => parts.to_mut().extend_from_slice(bytes),
                    _ => *found = Found::Message(bytes.into()),
                }
            }
            Kind::One(type_) => *found = Found::Value(self.value(field, type_, raw)?),
            Kind::List(type_) => {
                if !matches!(found, Found::Value(_)) {
                    *found = Found::Value(Value::Array(Vec::new()));
                }
                let Found::Value(Value::Array(items)) = found else { return Ok(()) };
                match raw {
                    Raw::Delimited(bytes) if matches!(type_, Type::Int32 | Type::Int64) => {
                        for number in forms::packed(bytes) {
                            items.push(self.value(field, type_, number?)?);
                        }
                    }
                    one => items.push(self.value(field, type_, one)?),
                }
            }
            Kind::Map(type_) => {
                let (key, value) = self.entry(field, type_, raw)?;
                if !matches!(found, Found::Value(_)) {
                    *found = Found::Value(Value::Object(Map::new()));
                }
                if let Found::Value(Value::Object(members)) = found {
                    members.insert(key, value);
                }
            }
        }
        Ok(())
    }

    /// An entry of a map is a message of a key and a value.
    fn entry(&mut self, field: &Field, type_: Type, raw: Raw<'_>) -> Result<(String, Value), DecodeError> {
        let (mut key, mut found) = (String::new(), None);
        let mut reader = Reader::new(delimited(raw, field.member)?, "");
        while let Some((number, value)) = reader.next()? {
            match number {
                1 => key = forms::text(value, "mapkey")?,
                2 => found = Some(self.value(field, type_, value)?),
                _ => {}
            }
        }
        let value = match (found, type_) {
            (Some(value), _) => value,
            (None, Type::Bytes) => "".into(),
            (None, _) => self.zero(type_)?,
        };
        Ok((key, value))
    }

    fn value(&mut self, field: &Field, type_: Type, raw: Raw<'_>) -> Result<Value, DecodeError> {
        self.spend(1)?;
        let name = field.member;
        Ok(match type_ {
            Type::String => forms::text(raw, name)?.into(),
            Type::Bool => (forms::long(raw, name)? != 0).into(),
            Type::Int32 => forms::int(raw, name)?.into(),
            Type::Int64 => forms::long(raw, name)?.into(),
            Type::Double => number(forms::double(raw, name)?),
            Type::Bytes => STANDARD.encode(delimited(raw, name)?).into(),
            Type::Time => forms::read_time(delimited(raw, name)?)?,
            Type::MicroTime => forms::read_micro_time(delimited(raw, name)?)?,
            Type::IntOrString => forms::read_int_or_string(delimited(raw, name)?)?,
            Type::Quantity => match forms::read_only(delimited(raw, name)?, "Quantity")? {
                Some(text) => String::from_utf8_lossy(text).into(),
                None => self.zero(type_)?,
            },
            Type::Raw => match forms::read_only(delimited(raw, name)?, "RawExtension")? {
                Some(json) if !json.is_empty() => decode_object(json)?.value,
                _ => Value::Null,
            },
            Type::Message(index) => self.message(Messages::get().at(index), delimited(raw, name)?)?.into(),
            Type::Strings | Type::SchemaOrBool(_) | Type::SchemaOrArray(_) | Type::SchemaOrStrings(_) => {
                self.alternatives(type_, delimited(raw, name)?)?
            }
        })
    }

    /// Messages that show only one of their members.
    fn alternatives(&mut self, type_: Type, bytes: &[u8]) -> Result<Value, DecodeError> {
        let (mut schema, mut list, mut allowed) = (None, Vec::new(), false);
        let mut reader = Reader::new(bytes, "");
        while let Some((number, value)) = reader.next()? {
            self.spend(1)?;
            match (type_, number) {
                (Type::SchemaOrBool(_), 1) => allowed = forms::long(value, "Allows")? != 0,
                (Type::Strings, 1) | (Type::SchemaOrStrings(_), 2) => list.push(forms::text(value, "Items")?.into()),
                (Type::SchemaOrArray(index), 2) => list.push(self.schema(index, value)?),
                (Type::SchemaOrBool(index), 2) | (Type::SchemaOrArray(index) | Type::SchemaOrStrings(index), 1) => {
                    schema = Some(self.schema(index, value)?);
                }
                _ => {}
            }
        }
        Ok(match (type_, schema) {
            _ if !list.is_empty() => list.into(),
            (_, Some(schema)) => schema,
            (Type::SchemaOrBool(_), None) => allowed.into(),
            _ => Value::Null,
        })
    }

    fn schema(&mut self, index: usize, raw: Raw<'_>) -> Result<Value, DecodeError> {
        Ok(self.message(Messages::get().at(index), delimited(raw, "Schema")?)?.into())
    }

    /// What a struct holds that nobody has written to.
    fn zero(&mut self, type_: Type) -> Result<Value, DecodeError> {
        Ok(match type_ {
            Type::String => "".into(),
            Type::Bool | Type::SchemaOrBool(_) => false.into(),
            Type::Int32 | Type::Int64 | Type::Double | Type::IntOrString => 0.into(),
            Type::Quantity => "0".into(),
            Type::Message(index) => self.message(Messages::get().at(index), &[])?.into(),
            Type::Bytes
            | Type::Time
            | Type::MicroTime
            | Type::Raw
            | Type::Strings
            | Type::SchemaOrArray(_)
            | Type::SchemaOrStrings(_) => Value::Null,
        })
    }

    /// Puts a member into its object, unless it does not show.
    fn show(&mut self, field: &Field, found: Found<'_>, object: &mut Map<String, Value>) -> Result<(), DecodeError> {
        let value = match (found, field.kind) {
            (Found::Nothing, Kind::One(type_)) if !field.optional => self.zero(type_)?,
            (Found::Nothing, _) if field.omit_empty => return Ok(()),
            (Found::Nothing, _) => Value::Null,
            (Found::Message(bytes), Kind::One(Type::Message(index))) => {
                self.message(Messages::get().at(index), &bytes)?.into()
            }
            (Found::Message(_), _) => return Ok(()),
            (Found::Value(value), _) => value,
        };
        if field.inline {
            if let Value::Object(mut members) = value {
                object.append(&mut members);
            }
            return Ok(());
        }
        let has_none = match field.kind {
            // An optional message without content, which would be written as none.
            Kind::One(_) if field.optional => field.omit_empty && value.is_null(),
            Kind::One(type_) => field.omit_empty && is_empty(type_, &value),
            Kind::List(_) | Kind::Map(_) => false,
        };
        if has_none || field.omit_zero && value.is_null() {
            return Ok(());
        }
        self.spend(1)?;
        object.insert(field.member.to_owned(), value);
        Ok(())
    }
}

/// Whether Go takes a value for empty; structs never are.
fn is_empty(type_: Type, value: &Value) -> bool {
    match type_ {
        Type::String | Type::Bytes => value.as_str().is_none_or(str::is_empty),
        Type::Bool => *value == false,
        Type::Int32 | Type::Int64 | Type::Double => value.as_f64() == Some(0.0),
        _ => false,
    }
}

/// Whole numbers are written without a point.
fn number(value: f64) -> Value {
    /// Every whole number up to here is an `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
    let whole = (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64);
    whole.map_or_else(|| Number::from_f64(value).map_or(Value::Null, Value::Number), Value::from)
}
