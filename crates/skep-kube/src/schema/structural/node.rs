//! Whether a schema is structural: every place has a type, and what stands in branches only narrows it.

use serde_json::Value;

use super::super::pattern;
use super::{MAX_DEPTH, lists, root};
use crate::go_text;
use crate::status::FieldError;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Keywords of JSON Schema that Kubernetes does not know.
const UNSUPPORTED: [&str; 6] = ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];

pub(super) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// What is wrong with a schema, in the two parts in which the server looks at it.
pub(super) struct Findings {
    /// Whether it has the structure of the objects that it describes, in the order of the texts.
    pub(super) structure: Vec<FieldError>,
    /// Whether its keywords say something, place by place.
    pub(super) keywords: Vec<FieldError>,
}

pub(super) fn check(schema: &Value, at: &str) -> Findings {
    let mut walk = Walk { structure: Vec::new(), keywords: Vec::new(), root: at };
    root::check_structure(schema, at, &mut walk.structure);
    walk.place(schema, at, Position::Root, 0);
    let Walk { mut structure, keywords, .. } = walk;
    // With keywords that Kubernetes does not know, the structure is not looked at.
    if keywords.iter().any(|error| error.detail.ends_with(" is not supported")) {
        structure.clear();
    }
    structure.sort_by_cached_key(ToString::to_string);
    Findings { structure, keywords }
}

pub(super) fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value.as_str() != Some("")
}

pub(super) fn check_object_parts(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for (name, wanted) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        if let Some(type_) = schema["properties"][name]["type"].as_str().filter(|type_| *type_ != wanted) {
            let field = format!("{at}.properties[{name}].type");
            errors.push(FieldError::invalid(field, type_, format!("must be {wanted}")));
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Position {
    Root,
    Property,
    Items,
    /// In `anyOf`, `oneOf`, `allOf` or `not`. Types may stand where a place that takes integers and strings says so.
    Branch {
        may_have_type: bool,
    },
}

struct Walk<'a> {
    structure: Vec<FieldError>,
    keywords: Vec<FieldError>,
    /// The path of the root, at which some mistakes are told wherever they are.
    root: &'a str,
}

impl Walk<'_> {
    fn place(&mut self, schema: &Value, at: &str, position: Position, depth: usize) {
        if depth > MAX_DEPTH {
            self.keywords.push(FieldError::forbidden(at, "nested too deeply"));
            return;
        }
        self.keywords(schema, at);
        self.type_(schema, at, position);
        self.extensions(schema, at, position);
        lists::check(schema, at, &mut self.keywords);
        if let Position::Branch { may_have_type } = position {
            self.narrows(schema, at, may_have_type);
        }
        self.inner(schema, at, position, depth);
    }

    fn keywords(&mut self, schema: &Value, at: &str) {
        for keyword in UNSUPPORTED.iter().filter(|keyword| is_set(&schema[**keyword])) {
            self.keywords.push(FieldError::forbidden(format!("{at}.{keyword}"), format!("{keyword} is not supported")));
        }
        if is_set(&schema["$schema"]) {
            self.keywords.push(FieldError::invalid(self.root, "", "OpenAPIV3Schema 'schema' is not supported"));
        }
        if schema["uniqueItems"] == true {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.keywords.push(FieldError::forbidden(format!("{at}.uniqueItems"), detail));
        }
        let has_properties = schema["properties"].as_object().is_some_and(|properties| !properties.is_empty());
        if has_properties && is_set(&schema["additionalProperties"]) && schema["additionalProperties"] != true {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.keywords.push(FieldError::forbidden(format!("{at}.additionalProperties"), detail));
        }
        if schema["items"].is_array() {
            let detail = "items must be a schema object and not an array";
            self.keywords.push(FieldError::forbidden(format!("{at}.items"), detail));
        }
        if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| !pattern.is_empty())
            && let Err(problem) = pattern::compile(pattern)
        {
            let detail = format!("must be a valid regular expression, but isn't: {problem}");
            self.structure.push(FieldError::invalid(format!("{at}.pattern"), pattern, detail));
        }
    }

    fn type_(&mut self, schema: &Value, at: &str, position: Position) {
        let field = format!("{at}.type");
        let type_ = schema["type"].as_str().unwrap_or_default();
        if type_.is_empty() {
            let exempt = schema[INT_OR_STRING] == true || schema[PRESERVE] == true || schema[EMBEDDED] == true;
            let words = match position {
                Position::Property => "must not be empty for specified object fields",
                Position::Items => "must not be empty for specified array items",
                Position::Root | Position::Branch { .. } => return,
            };
            if !exempt {
                self.structure.push(FieldError::required(field, words));
            }
            return;
        }
        if !TYPES.contains(&type_) {
            self.keywords.push(FieldError::not_supported(&field, type_, &TYPES));
        }
        if type_ == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.keywords.push(FieldError::forbidden(field, detail));
        }
        if type_ == "array" && schema["items"].is_null() {
            self.structure.push(FieldError::required(format!("{at}.items"), "must be specified"));
        }
    }

    fn extensions(&mut self, schema: &Value, at: &str, position: Position) {
        if schema[PRESERVE] == false {
            let detail = "must be true or undefined";
            self.keywords.push(FieldError::invalid(format!("{at}.{PRESERVE}"), false, detail));
        }
        if schema[EMBEDDED] == true && !matches!(position, Position::Branch { .. }) {
            let empty = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
            if empty && schema[PRESERVE] != true {
                let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                              x-kubernetes-preserve-unknown-fields";
                self.structure.push(FieldError::required(format!("{at}.properties"), detail));
            }
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            match schema["type"].as_str().unwrap_or_default() {
                "object" => {}
                "" => self.structure.push(FieldError::required(format!("{at}.type"), detail)),
                other => self.structure.push(FieldError::invalid(format!("{at}.type"), other, detail)),
            }
            check_object_parts(schema, at, &mut self.structure);
        }
    }

    /// What may not stand in a branch, because it would add to the structure and not narrow it.
    fn narrows(&mut self, schema: &Value, at: &str, may_have_type: bool) {
        let mut forbid = |keyword: &str, words: &str| {
            if is_set(&schema[keyword]) {
                let detail = format!("must be {words} to be structural");
                self.structure.push(FieldError::forbidden(format!("{at}.{keyword}"), detail));
            }
        };
        forbid("additionalProperties", "undefined");
        forbid("default", "undefined");
        forbid("description", "empty");
        forbid("nullable", "false");
        forbid("title", "empty");
        if !may_have_type {
            forbid("type", "empty");
        }
        forbid(EMBEDDED, "false");
        forbid(INT_OR_STRING, "false");
        forbid(PRESERVE, "false");
        forbid("x-kubernetes-validations", "empty");
    }

    fn inner(&mut self, schema: &Value, at: &str, position: Position, depth: usize) {
        let branch = matches!(position, Position::Branch { .. });
        let inside = |position: Position| if branch { Position::Branch { may_have_type: false } } else { position };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.place(property, &format!("{at}.properties[{name}]"), inside(Position::Property), depth + 1);
        }
        for (keyword, position) in [("items", Position::Items), ("additionalProperties", Position::Property)] {
            if schema[keyword].is_object() && !(branch && keyword == "additionalProperties") {
                self.place(&schema[keyword], &format!("{at}.{keyword}"), inside(position), depth + 1);
            }
        }
        if schema["not"].is_object() {
            let position = Position::Branch { may_have_type: false };
            self.place(&schema["not"], &format!("{at}.not"), position, depth + 1);
        }
        let int_or_string = schema[INT_OR_STRING] == true;
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (index, branch) in schema[keyword].as_array().into_iter().flatten().enumerate() {
                // Integers and strings may be told apart in `anyOf`, or in the first of `allOf`.
                let may_have_type = int_or_string && keyword == "anyOf" && is_integer_or_string(&schema[keyword]);
                let at = format!("{at}.{keyword}[{index}]");
                let position = Position::Branch { may_have_type };
                if int_or_string && keyword == "allOf" && index == 0 && is_integer_or_string(&branch["anyOf"]) {
                    let mut rest = branch.clone();
                    rest["anyOf"] = Value::Null;
                    self.place(&rest, &at, position, depth + 1);
                } else {
                    self.place(branch, &at, position, depth + 1);
                }
            }
        }
    }
}

/// Whether branches are exactly an integer and a string, in that order.
fn is_integer_or_string(branches: &Value) -> bool {
    go_text::json(branches) == r#"[{"type":"integer"},{"type":"string"}]"#
}
