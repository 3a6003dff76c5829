//! What an object of a built-in kind is before anything is written to it.

use serde_json::{Map, Value};

use crate::schema::{Schema, Type};

/// The structs that an object of the kind always has, whether or not they are written, and null for members that it
/// must have and does not. Whoever creates an object owns none of these structs, because they were always there.
///
/// For built-in kinds only; custom resources begin as `{}`.
pub fn blank(schema: &Schema) -> Value {
    let mut object = Map::new();
    for (name, property) in &schema.properties {
        let definition = definition(property);
        let is_required = schema.required.contains(name);
        let always_there = property.default.as_ref().is_some_and(Value::is_object);
        if always_there && definition.type_ == Some(Type::Object) {
            object.insert(name.clone(), blank(definition));
        } else if let (true, Some(default)) = (is_required, &property.default) {
            object.insert(name.clone(), default.clone());
        } else if is_required {
            object.insert(name.clone(), Value::Null);
        }
    }
    Value::Object(object)
}

fn definition(schema: &Schema) -> &Schema {
    match schema.all_of.as_slice() {
        [definition] if schema.type_.is_none() => definition,
        _ => schema,
    }
}
