//! The schemas of built-in kinds as OpenAPI documents show them: the types and words of k8s-openapi, completed by the
//! facts.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::facts::{self, Definition, Member};
use super::schema::{describe, json, list, one_value, texts};
use crate::schema::Schema;

const REFERENCE: &str = "$ref";

/// A kind and all that it is made of, as schemas that refer to each other.
pub fn definitions(group: &str, kind: &str) -> Map<String, Value> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    describe(group, kind, &mut generator);
    let mut definitions = generator.take_definitions(true);
    for (name, definition) in &mut definitions {
        if let Some(scalar) = one_value(name) {
            *definition = of_one_value(&scalar, definition);
        } else if let Some(facts) = facts::definition(facts::short_name(name)) {
            complete_definition(definition, facts);
        }
    }
    definitions
}

fn of_one_value(scalar: &Schema, definition: &Value) -> Value {
    let mut shown = json!({});
    put(&mut shown, "description", definition.get("description").cloned());
    put(&mut shown, "type", scalar.type_.map(|type_| type_.name().into()));
    put(&mut shown, "format", scalar.format.as_deref().map(Value::from));
    let types = scalar.one_of.iter().filter_map(|one| Some(json!({ "type": one.type_?.name() })));
    put(&mut shown, "oneOf", Some(types.collect::<Vec<_>>()).filter(|types| !types.is_empty()).map(Value::from));
    shown
}

fn complete_definition(definition: &mut Value, facts: &Definition) {
    put(definition, "required", facts.required.map(|names| list(Some(names)).into()));
    put(definition, "x-kubernetes-map-type", facts.atomic.then(|| "atomic".into()));
    put(definition, "x-kubernetes-unions", json(facts.unions));
    for (name, place) in definition.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(facts) = facts.members.get(name.as_str()) {
            complete_member(place, facts);
        }
    }
}

fn complete_member(place: &mut Value, facts: &Member) {
    let text = |text: Option<&str>| text.map(Value::from);
    put(place, "default", json(facts.default));
    if let Some(values) = facts.enum_.map(texts) {
        let words = place["description"].as_str().unwrap_or_default();
        let listed: Vec<String> = values.iter().map(|value| format!("\n - `{value}`")).collect();
        let listed = listed.concat();
        put(place, "description", Some(format!("{words}\n\nPossible enum values:{listed}").into()));
        put(place, "enum", Some(values.into()));
    }
    put(place, "x-kubernetes-list-type", text(facts.list));
    put(place, "x-kubernetes-list-map-keys", facts.keys.map(|keys| list(Some(keys)).into()));
    put(place, "x-kubernetes-map-type", text(facts.map));
    put(place, "x-kubernetes-patch-strategy", text(facts.patch));
    put(place, "x-kubernetes-patch-merge-key", text(facts.merge_key));
    for (below, default, enum_) in [
        ("/items", facts.item_default, facts.item_enum),
        ("/additionalProperties", facts.value_default, facts.value_enum),
        ("/additionalProperties/items", facts.value_item_default, None),
    ] {
        if let Some(below) = place.pointer_mut(below).filter(|below| below.is_object()) {
            put(below, "default", json(default));
            put(below, "enum", enum_.map(|values| texts(values).into()));
        }
    }
}

/// Says something about a place, or nothing of what was said. A reference has no room for it beside itself.
fn put(place: &mut Value, keyword: &str, value: Option<Value>) {
    let Some(members) = place.as_object_mut() else { return };
    let Some(value) = value else {
        members.remove(keyword);
        return;
    };
    if let Some(reference) = members.remove(REFERENCE) {
        members.insert("allOf".to_owned(), json!([{ REFERENCE: reference }]));
    }
    members.insert(keyword.to_owned(), value);
}
