//! What must hold for any schema and any value: nothing panics, and doing a thing twice is doing it once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use skep_kube::schema::{
    CompiledSchema, Schema, apply_defaults, prune, structural, unreadable, validate, validate_status,
};

const NAMES: [&str; 6] = ["a", "b", "metadata", "kind", "status", "x-y"];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!("2026-01-01T00:00:00Z")),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&NAMES[..]), inner), 0..5).prop_map(object),
        ]
    })
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, member)| (name.to_owned(), member)).collect::<Map<_, _>>())
}

/// One keyword with an argument that may or may not make sense.
fn keyword() -> impl Strategy<Value = (String, Value)> {
    let flags = [
        "nullable",
        "exclusiveMaximum",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
        "additionalProperties",
    ];
    let numbers = ["minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxProperties"];
    let formats = ["int32", "date-time", "duration", "uri", "email", "uuid", "byte", "cidr", "nonsense"];
    let patterns = ["^[a-z]+$", "(", "\\\\d", "[[:alpha:]]{2}"];
    let rules = [
        "self == oldSelf",
        "self.a > 1",
        "size(self) < 3",
        "self.all(x, x == 1)",
        "self[0] / 0 == 1",
        "(",
        "self.?a.orValue(1) > 2",
    ];
    let pair = |name: &str, value: Value| (name.to_owned(), value);
    prop_oneof![
        prop::sample::select(&["object", "array", "string", "integer", "number", "boolean", "null"][..])
            .prop_map(move |type_| pair("type", type_.into())),
        (prop::sample::select(flags.to_vec()), any::<bool>()).prop_map(move |(name, flag)| pair(name, flag.into())),
        (prop::sample::select(numbers.to_vec()), -3..5_i32).prop_map(move |(name, number)| pair(name, number.into())),
        prop::sample::select(formats.to_vec()).prop_map(move |format| pair("format", format.into())),
        prop::sample::select(patterns.to_vec()).prop_map(move |pattern| pair("pattern", pattern.into())),
        prop::sample::select(rules.to_vec())
            .prop_map(move |rule| pair("x-kubernetes-validations", json!([{ "rule": rule }]))),
        prop::sample::select(&["set", "map", "atomic"][..])
            .prop_map(move |list| pair("x-kubernetes-list-type", list.into())),
        Just(pair("x-kubernetes-list-map-keys", json!(["a"]))),
        value().prop_map(move |default| pair("default", default)),
        prop::collection::vec(value(), 0..3).prop_map(move |values| pair("enum", values.into())),
        prop::sample::select(&NAMES[..]).prop_map(move |name| pair("required", json!([name]))),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let flat = || prop::collection::vec(keyword(), 0..5).prop_map(|pairs| pairs.into_iter().collect::<Map<_, _>>());
    flat().prop_map(Value::Object).prop_recursive(4, 24, 4, move |inner| {
        let properties =
            prop::collection::vec((prop::sample::select(&NAMES[..]), inner.clone()), 0..4).prop_map(object);
        let place = prop::sample::select(&["items", "additionalProperties", "not", "anyOf", "oneOf", "allOf"][..]);
        (flat(), properties, place, inner).prop_map(|(mut members, properties, place, inner)| {
            members.insert("properties".to_owned(), properties);
            let inner = if place.ends_with("Of") { json!([inner]) } else { inner };
            members.insert(place.to_owned(), inner);
            Value::Object(members)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pruning_and_defaulting_twice_is_doing_it_once(document in schema(), object in value()) {
        let schema = Schema::read(&document);
        let mut pruned = object.clone();
        prune(&schema, &mut pruned);
        let mut again = pruned.clone();
        prop_assert!(prune(&schema, &mut again).is_empty());
        prop_assert_eq!(&again, &pruned);

        let mut defaulted = pruned;
        apply_defaults(&schema, &mut defaulted);
        let mut again = defaulted.clone();
        apply_defaults(&schema, &mut again);
        prop_assert_eq!(again, defaulted);
    }

    #[test]
    fn no_schema_and_no_value_make_validation_panic(document in schema(), new in value(), old in value()) {
        let schema = CompiledSchema::new(Arc::new(Schema::read(&document)));
        validate(&schema, &new, None);
        validate(&schema, &new, Some(&old));
        validate_status(&schema, &new, &old);
        let _ = unreadable(schema.schema(), &new);
        let version = json!({ "name": "v1", "storage": true, "schema": { "openAPIV3Schema": document } });
        structural::check(&json!({ "spec": { "versions": [version, new] } }), None);
    }

    #[test]
    fn what_has_not_changed_breaks_no_keyword(document in schema(), object in value()) {
        let mut plain = document;
        plain.as_object_mut().unwrap().remove("x-kubernetes-validations");
        let schema = CompiledSchema::new(Arc::new(Schema::read(&plain)));
        let told = validate(&schema, &object, Some(&object));
        let about_keywords = told.iter().filter(|error| error.detail.contains("in body")).count();
        prop_assert_eq!(about_keywords, 0);
    }
}
