//! Whether the members of a built-in object have the types that its schema gives them. A real server decodes bodies
//! into structs and refuses what does not fit before it looks at anything else.

use serde_json::Value;

use crate::schema::{Schema, Type};

/// Deeper than any built-in kind goes.
const DEPTH_LIMIT: usize = 64;

/// The first member that does not fit, as a decoder tells it.
pub fn misfit(kind: &str, schema: &Schema, object: &Value) -> Option<String> {
    let Misfit { path, found, expected } = find(schema, object, &mut Vec::new())?;
    let field = path.join(".");
    // Decoders name the struct that holds the field; those below a kind are named after it.
    let holder = match path.first() {
        Some(first) if path.len() > 1 => format!("{kind}{}{}", first[..1].to_uppercase(), &first[1..]),
        _ => kind.to_owned(),
    };
    Some(format!("json: cannot unmarshal {found} into Go struct field {holder}.{field} of type {expected}"))
}

struct Misfit {
    path: Vec<String>,
    found: &'static str,
    expected: &'static str,
}

fn find(schema: &Schema, value: &Value, path: &mut Vec<String>) -> Option<Misfit> {
    // An absent value and a null are the same, and what the schema leaves open may be anything.
    if value.is_null() || schema.int_or_string || schema.preserve_unknown_fields || path.len() > DEPTH_LIMIT {
        return None;
    }
    if let Some(type_) = schema.type_
        && !fits(type_, value)
    {
        return Some(Misfit { path: path.clone(), found: found(value), expected: expected(type_, schema) });
    }
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let below = schema.member(name)?;
            // The entries of a map have no names of their own in a struct.
            let is_property = schema.properties.contains_key(name);
            if is_property {
                path.push(name.clone());
            }
            let misfit = find(below, member, path);
            if is_property {
                path.pop();
            }
            misfit
        }),
        Value::Array(items) => {
            let below = schema.items.as_ref()?;
            items.iter().find_map(|item| find(below, item, path))
        }
        _ => None,
    }
}

fn fits(type_: Type, value: &Value) -> bool {
    match type_ {
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => value.is_i64() || value.is_u64(),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
    }
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn expected(type_: Type, schema: &Schema) -> &'static str {
    match type_ {
        Type::Object if schema.additional_properties.is_some() => "map[string]string",
        Type::Object => "struct",
        Type::Array => "slice",
        Type::String => "string",
        Type::Integer if schema.format.as_deref() == Some("int64") => "int64",
        Type::Integer => "int32",
        Type::Number => "float64",
        Type::Boolean => "bool",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: &str, group: &str, object: &Value) -> Option<String> {
        misfit(kind, &crate::builtin::schema(group, "v1", kind).unwrap(), object)
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        assert_eq!(
            of("ConfigMap", "", &json!({ "data": { "a": 5 } })).unwrap(),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
        assert_eq!(
            of("Deployment", "apps", &json!({ "spec": { "replicas": "many" } })).unwrap(),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
    }

    #[test]
    fn nulls_quantities_ports_and_unknown_members_fit() {
        let pod = json!({ "spec": { "hostname": null, "containers": [{
            "name": "c", "resources": { "limits": { "cpu": 1, "memory": "1Gi" } }, "novel": 7,
            "livenessProbe": { "httpGet": { "port": "web" } },
        }] } });
        assert_eq!(of("Pod", "", &pod), None);
    }
}
