//! Whether lists and maps can be merged as they say.

use serde_json::Value;

use crate::status::FieldError;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";

pub(super) fn check(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let list_type = schema[LIST_TYPE].as_str();
    let type_ = schema["type"].as_str().unwrap_or_default();
    let mut wants_type = |wanted: &str, because: &str| {
        let detail = format!("must be {wanted} if {because} is specified");
        let field = format!("{at}.type");
        if type_.is_empty() {
            errors.push(FieldError::required(field, detail));
        } else if type_ != wanted {
            errors.push(FieldError::invalid(field, type_, detail));
        }
    };
    if list_type.is_some() {
        wants_type("array", LIST_TYPE);
    }
    if schema[MAP_TYPE].is_string() {
        wants_type("object", MAP_TYPE);
    }
    if let Some(unknown) = list_type.filter(|known| !["atomic", "set", "map"].contains(known)) {
        let detail = r#"supported values: "atomic", "set", "map""#;
        let problem = crate::status::Problem::NotSupported(unknown.into());
        errors.push(FieldError::new(format!("{at}.{LIST_TYPE}"), problem, detail));
    }
    if let Some(unknown) = schema[MAP_TYPE].as_str().filter(|known| !["atomic", "granular"].contains(known)) {
        errors.push(FieldError::not_supported(format!("{at}.{MAP_TYPE}"), unknown, &["atomic", "granular"]));
    }
    check_keys(schema, list_type, at, errors);
    match list_type {
        Some("set") => check_set(&schema["items"], &format!("{at}.items"), errors),
        Some("map") => check_map(schema, at, errors),
        _ => {}
    }
}

fn keys(schema: &Value) -> Vec<&str> {
    schema[KEYS].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn check_keys(schema: &Value, list_type: Option<&str>, at: &str, errors: &mut Vec<FieldError>) {
    let keys = keys(schema);
    let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
    let field = format!("{at}.{LIST_TYPE}");
    match list_type {
        Some("map") if keys.is_empty() => {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(format!("{at}.{KEYS}"), detail));
        }
        None if !keys.is_empty() => errors.push(FieldError::required(field, detail)),
        Some(other) if other != "map" && !keys.is_empty() => errors.push(FieldError::invalid(field, other, detail)),
        _ => {}
    }
}

fn check_set(items: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if items["nullable"] == true {
        let detail = "cannot be nullable when x-kubernetes-list-type is set";
        errors.push(FieldError::forbidden(format!("{at}.nullable"), detail));
    }
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    match items["type"].as_str() {
        Some("object") if items[MAP_TYPE] != "atomic" => {
            errors.push(FieldError::invalid(format!("{at}.{MAP_TYPE}"), Value::Null, detail));
        }
        Some("array") => {
            if let Some(other) = items[LIST_TYPE].as_str().filter(|list_type| *list_type != "atomic") {
                errors.push(FieldError::invalid(format!("{at}.{LIST_TYPE}"), other, detail));
            }
        }
        _ => {}
    }
}

fn check_map(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let items = &schema["items"];
    let keys = keys(schema);
    let field = |name: &str| format!("{at}.items.{name}");
    if items["nullable"] == true {
        let detail = "cannot be nullable when x-kubernetes-list-type is map";
        errors.push(FieldError::forbidden(field("nullable"), detail));
    }
    match items["type"].as_str().unwrap_or_default() {
        "object" => {}
        "" => errors.push(FieldError::required(
            field("type"),
            "must be object if parent array's x-kubernetes-list-type is map",
        )),
        other => {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(field("type"), other, detail));
            return;
        }
    }
    let all = || Value::from(keys.clone());
    if keys.iter().any(|key| !items["properties"][key].is_object()) {
        let detail = "entries must all be names of item properties";
        errors.push(FieldError::invalid(format!("{at}.{KEYS}"), all(), detail));
    }
    let mut unique = keys.clone();
    unique.sort_unstable();
    unique.dedup();
    if unique.len() != keys.len() {
        errors.push(FieldError::invalid(format!("{at}.{KEYS}"), all(), "must not contain duplicate entries"));
    }
    for key in unique {
        check_key(key, items, &field(&format!("properties[{key}]")), errors);
    }
}

fn check_key(key: &str, items: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let property = &items["properties"][key];
    if !property.is_object() {
        return;
    }
    if let Some(type_) = property["type"].as_str().filter(|type_| matches!(*type_, "object" | "array")) {
        let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{at}.type"), type_, detail));
    }
    let required = items["required"].as_array().is_some_and(|required| required.iter().any(|name| name == key));
    if property["nullable"] == true {
        let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        errors.push(FieldError::forbidden(format!("{at}.nullable"), detail));
    }
    if !required && property["default"].is_null() {
        let detail =
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        errors.push(FieldError::required(format!("{at}.default"), detail));
    }
}
