//! Made-up objects of every kind, and made-up bytes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::messages::{Field, Kind, Message, Messages, Type};
use super::*;

/// Random decisions that a seed repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*, which must not start at zero.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % sides
    }

    fn word(&mut self) -> String {
        ["", "a", "skep", "größe", "two words", "0"][usize::try_from(self.roll(6)).unwrap()].to_owned()
    }

    fn number(&mut self, bits: u32) -> i64 {
        match self.roll(5) {
            0 => 0,
            1 => -1,
            2 => i64::MAX >> (64 - bits),
            3 => i64::MIN >> (64 - bits),
            _ => i64::try_from(self.roll(100_000)).unwrap(),
        }
    }

    /// An object of a kind as the real server writes it, with most of the members it can have.
    fn object(&mut self, api_version: &str, kind: &str) -> Value {
        let message = Messages::get().of_kind(api_version, kind).unwrap();
        let mut object = self.members(message, 0);
        object.insert("apiVersion".into(), api_version.into());
        object.insert("kind".into(), kind.into());
        object.into()
    }

    fn members(&mut self, message: &Message, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for field in &message.fields {
            if let (true, Kind::One(Type::Message(index))) = (field.inline, field.kind) {
                object.append(&mut self.members(Messages::get().at(index), depth));
            } else if let Some(value) = self.member(field, depth) {
                object.insert(field.member.to_owned(), value);
            }
        }
        object
    }

    fn member(&mut self, field: &Field, depth: usize) -> Option<Value> {
        // Schemas hold schemas; without an end to it, so would the test.
        let is_absent = self.roll(4) == 0 || depth > 6 || depth > 2 && self.roll(3) > 0;
        let value = match field.kind {
            Kind::One(type_) if !field.optional => self.value(type_, depth, true),
            _ if is_absent => Value::Null,
            Kind::One(type_) => self.value(type_, depth, false),
            Kind::List(type_) => (0..=self.roll(2)).map(|_| self.value(type_, depth, false)).collect(),
            Kind::Map(type_) => {
                (0..=self.roll(2)).map(|_| (self.word(), self.value(type_, depth, false))).collect::<Map<_, _>>().into()
            }
        };
        let is_scalar = matches!(
            field.kind,
            Kind::One(Type::String | Type::Bool | Type::Int32 | Type::Int64 | Type::Double | Type::Bytes)
        );
        let is_zero = [json!(null), json!(""), json!(false), json!(0)].contains(&value);
        let is_omitted = if field.optional || !matches!(field.kind, Kind::One(_)) {
            field.omit_empty && value.is_null()
        } else {
            field.omit_empty && is_scalar && is_zero || field.omit_zero && is_zero
        };
        (!is_omitted).then_some(value)
    }

    fn value(&mut self, type_: Type, depth: usize, may_be_null: bool) -> Value {
        let is_null = may_be_null && self.roll(3) == 0;
        match type_ {
            Type::String => self.word().into(),
            Type::Bool => (self.roll(2) == 0).into(),
            Type::Int32 => self.number(32).into(),
            Type::Int64 => self.number(64).into(),
            Type::Double => {
                [json!(0), json!(-3), json!(0.5), json!(1e300)][usize::try_from(self.roll(4)).unwrap()].clone()
            }
            Type::Bytes => ["AP8=", "c2tlcA=="][usize::try_from(self.roll(2)).unwrap()].into(),
            Type::Time | Type::MicroTime | Type::Raw if is_null => Value::Null,
            Type::Time => "2026-11-15T12:00:00Z".into(),
            Type::MicroTime => "1969-12-31T23:59:58.000001Z".into(),
            Type::Quantity => ["0", "100m", "1Gi"][usize::try_from(self.roll(3)).unwrap()].into(),
            Type::IntOrString => {
                if self.roll(2) == 0 {
                    "25%".into()
                } else {
                    self.number(32).into()
                }
            }
            Type::Raw => json!({ "f:a": { ".": {} }, "list": [1, "x", null] }),
            Type::Strings => json!([self.word(), "b"]),
            Type::SchemaOrBool(_) if self.roll(2) == 0 => (self.roll(2) == 0).into(),
            Type::SchemaOrArray(index) if self.roll(2) == 0 => {
                json!([self.members(Messages::get().at(index), depth + 1)])
            }
            Type::SchemaOrStrings(_) if self.roll(2) == 0 => json!([self.word()]),
            Type::SchemaOrBool(index)
            | Type::SchemaOrArray(index)
            | Type::SchemaOrStrings(index)
            | Type::Message(index) => self.members(Messages::get().at(index), depth + 1).into(),
        }
    }
}

fn every_kind() -> Vec<(String, String)> {
    let mut kinds = Vec::new();
    for kind in crate::builtin::table() {
        kinds.push((kind.api_version(), kind.kind.to_owned()));
        if kind.verbs.contains(&"list") {
            kinds.push((kind.api_version(), format!("{}List", kind.kind)));
        }
    }
    let others = [
        ("v1", "Status"),
        ("v1", "DeleteOptions"),
        ("meta.k8s.io/v1", "PartialObjectMetadataList"),
        ("autoscaling/v1", "Scale"),
    ];
    kinds.extend(others.map(|(version, kind)| (version.to_owned(), kind.to_owned())));
    kinds
}

fn item_by_item(mut list: Value) -> Vec<u8> {
    let items = list.as_object_mut().unwrap().remove("items").unwrap();
    let message = ListMessage::new(&list).unwrap();
    let mut output = Vec::new();
    for item in items.as_array().into_iter().flatten() {
        message.put_item(item.to_string().as_bytes(), &mut output).unwrap();
    }
    let (before, after) = message.around(output.len()).unwrap();
    [before, output, after].concat()
}

#[test]
fn an_object_of_every_kind_comes_back_as_it_went() {
    for seed in 1..20 {
        for (api_version, kind) in every_kind() {
            let object = Dice(seed * 7919).object(&api_version, &kind);
            let bytes = encode(&object).unwrap();
            assert_eq!(decode(&bytes).unwrap(), object, "{api_version} {kind}, seed {seed}");
            if kind.ends_with("List") {
                assert_eq!(item_by_item(object), bytes, "{api_version} {kind}, seed {seed}");
            }
        }
    }
}

#[test]
fn what_is_not_sent_shows_as_go_shows_it() {
    let bytes = b"k8s\0\x0a\x15\x0a\x07apps/v1\x12\x0aDeployment";
    assert_eq!(
        decode(bytes).unwrap(),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "status": {},
            "spec": { "selector": null, "strategy": {}, "template": { "metadata": {}, "spec": { "containers": null } } },
        })
    );
}

#[test]
fn parts_of_a_message_are_put_together_and_unknown_fields_passed_over() {
    let whole = encode(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} })).unwrap();
    let envelope = Envelope::open(&whole).unwrap();
    let message = Messages::get().of_kind(&envelope.api_version, &envelope.kind).unwrap();
    // metadata.name, then metadata.namespace, a group in field 99, and a number in field 100.
    let raw = b"\x0a\x03\x0a\x01a\x0a\x03\x1a\x01b\x9b\x06\x08\x01\x9c\x06\xa0\x06\x05";
    let object = super::decode::object(message, raw).unwrap();
    assert_eq!(Value::Object(object), json!({ "metadata": { "name": "a", "namespace": "b" } }));
}

#[test]
fn an_optional_message_without_content_is_none() {
    let message = Messages::get().of_kind("v1", "ConfigMap").unwrap();
    // metadata.managedFields[0].fieldsV1, with nothing in it.
    let object = super::decode::object(message, b"\x0a\x05\x8a\x01\x02\x3a\x00").unwrap();
    assert_eq!(object["metadata"]["managedFields"], json!([{}]));
}

#[test]
fn numbers_may_be_packed() {
    let message = Messages::get().of_kind("v1", "Pod").unwrap();
    // spec.securityContext.supplementalGroups, as two numbers in one field and one in another.
    let object = super::decode::object(message, b"\x12\x09\x72\x07\x22\x03\x01\x96\x01\x20\x07").unwrap();
    assert_eq!(object["spec"]["securityContext"], json!({ "supplementalGroups": [1, 150, 7] }));
}

#[test]
fn what_cannot_be_read_is_told_in_the_words_of_the_real_server() {
    let table: [(&[u8], &str); 8] = [
        (b"", "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\xff", "unexpected EOF"),
        (b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
        (b"k8s\0\x00", "proto: Unknown: illegal tag 0 (wire type 0)"),
        (b"k8s\0\x0c", "proto: Unknown: wiretype end group for non-group"),
        (b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
    ];
    for (bytes, expected) in table {
        assert_eq!(decode(bytes).unwrap_err().to_string(), expected, "{bytes:?}");
    }
}

#[test]
fn a_small_message_does_not_become_a_large_object() {
    let message = Messages::get().of_kind("v1", "PodList").unwrap();
    // Pods of two bytes each, which show a dozen members.
    let pods = b"\x12\x00".repeat(1_000_000);
    assert_eq!(super::decode::object(message, &pods).unwrap_err(), DecodeError::TooLarge);
}

#[test]
fn nesting_has_an_end() {
    let message = Messages::get().of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    // spec.versions[0].schema.openAPIV3Schema, and `not` in `not`.
    let mut bytes = Vec::new();
    for _ in 0..2_000 {
        bytes = nested(28, &bytes);
    }
    for number in [1, 4, 7, 2] {
        bytes = nested(number, &bytes);
    }
    assert_eq!(super::decode::object(message, &bytes).unwrap_err(), DecodeError::TooDeep);
    // JSON in a message counts, too.
    let message = Messages::get().of_kind("apps/v1", "ControllerRevision").unwrap();
    let json = format!("{}{}", "[".repeat(119), "]".repeat(119));
    assert!(super::decode::object(message, &nested(2, &nested(1, json.as_bytes()))).is_ok());
    let json = format!("{}{}", "[".repeat(120), "]".repeat(120));
    let refused = super::decode::object(message, &nested(2, &nested(1, json.as_bytes())));
    assert_eq!(refused.unwrap_err(), DecodeError::TooDeep);
}

fn nested(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    wire::put_bytes(&mut output, number, bytes);
    output
}

proptest! {
    /// Whatever comes, there is an answer, and what could be read can be written and read again.
    #[test]
    fn damaged_bytes_do_no_harm(
        seed in 1_u64..,
        kind in 0..every_kind().len(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let (api_version, kind) = &every_kind()[kind];
        let mut bytes = encode(&Dice(seed).object(api_version, kind)).unwrap();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(object) = decode(&bytes) {
            prop_assert!(object.to_string().len() < 64 * (bytes.len() + 64 * 1024));
            // A quantity or a map key may be anything; what was read once reads the same again.
            if let Ok(again) = encode(&object) {
                prop_assert_eq!(decode(&again).unwrap(), object);
            }
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0..every_kind().len()) {
        let (api_version, kind) = &every_kind()[kind];
        let message = Messages::get().of_kind(api_version, kind).unwrap();
        let _ = super::decode::object(message, &bytes);
    }
}
