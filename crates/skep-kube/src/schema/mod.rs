//! Schemas of objects, built-in and custom alike: what is known about each place of an object.
//!
//! A schema is read once ([`Schema::read`]) and then asked by everything that looks into objects: pruning, defaulting,
//! validation, the patches that merge lists, and server-side apply.

mod counterparts;
mod defaults;
pub(crate) mod duration;
mod metadata;
pub(crate) mod path;
mod pattern;
mod prune;
mod rules;
pub mod structural;
mod validate;

pub use defaults::{apply_defaults, fill_defaults};
pub use metadata::{settle_embedded, unreadable};
pub use prune::prune;
pub use rules::CompiledRules;
pub use validate::{CompiledSchema, Scale, validate, validate_status};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// What is known about one place of an object, and below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    pub type_: Option<Type>,
    pub format: Option<String>,
    pub description: Option<String>,
    pub default: Option<Value>,
    pub nullable: bool,

    /// Members with names that the schema knows.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// The values of a map, when the place is one.
    pub additional_properties: Option<Arc<Schema>>,
    /// Whether there may be further members, when it is said without saying what they are.
    pub additional_allowed: Option<bool>,
    /// The items of a list, when the place is one.
    pub items: Option<Arc<Schema>>,
    pub required: Vec<String>,

    pub enum_: Option<Vec<Value>>,
    pub bounds: Bounds,
    pub pattern: Option<String>,

    /// Keep members that the schema does not know.
    pub preserve_unknown_fields: bool,
    /// The place holds a whole object with `apiVersion`, `kind` and `metadata`.
    pub embedded_resource: bool,
    pub int_or_string: bool,
    /// How a list is merged and owned.
    pub list_type: ListType,
    /// Whether a map or struct is replaced as a whole.
    pub atomic_map: bool,
    /// How strategic merge patches treat the place. Built-in kinds only.
    pub patch: PatchStrategy,
    /// CEL rules.
    pub rules: Vec<Rule>,

    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
}

/// The types of JSON values that Kubernetes tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    pub(crate) fn read(name: &str) -> Option<Self> {
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// Limits of size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bounds {
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
}

/// How a list is merged and owned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole. Also what a list is that says nothing.
    #[default]
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects, told apart by these members.
    Map(Vec<String>),
}

/// How a strategic merge patch treats a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged rather than replaced.
    pub merge: bool,
    /// Members that are absent from the patch are removed.
    pub retain_keys: bool,
    /// The member that tells the items of a merged list apart; none for a list of scalars.
    pub merge_key: Option<String>,
}

/// A CEL rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    pub rule: String,
    pub message: Option<String>,
    pub message_expression: Option<String>,
    pub reason: Option<String>,
    pub field_path: Option<String>,
    pub optional_old_self: bool,
}

impl Schema {
    /// Reads a schema document: the `openAPIV3Schema` of a CRD, or a definition with all references resolved.
    pub fn read(document: &Value) -> Self {
        let text = |name: &str| document[name].as_str().map(str::to_owned);
        let flag = |name: &str| document[name].as_bool().unwrap_or_default();
        let inner = |name: &str| document[name].is_object().then(|| Arc::new(Self::read(&document[name])));
        let several = |name: &str| document[name].as_array().into_iter().flatten().map(Self::read).collect();
        Self {
            type_: document["type"].as_str().and_then(Type::read),
            format: text("format"),
            description: text("description"),
            default: document.get("default").cloned(),
            nullable: flag("nullable"),
            properties: document["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), Arc::new(Self::read(property))))
                .collect(),
            additional_properties: inner("additionalProperties"),
            additional_allowed: document["additionalProperties"].as_bool(),
            items: inner("items"),
            required: texts(&document["required"]),
            enum_: document["enum"].as_array().cloned(),
            bounds: Bounds::read(document),
            pattern: text("pattern"),
            preserve_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string") || document["format"] == "int-or-string",
            list_type: ListType::read(document),
            atomic_map: document["x-kubernetes-map-type"] == "atomic",
            patch: PatchStrategy::read(document),
            rules: document["x-kubernetes-validations"].as_array().into_iter().flatten().map(Rule::read).collect(),
            all_of: several("allOf"),
            any_of: several("anyOf"),
            one_of: several("oneOf"),
            not: document["not"].is_object().then(|| Box::new(Self::read(&document["not"]))),
        }
    }

    /// The schema of a member: one that is known by name, or that of any member of a map.
    pub fn member(&self, name: &str) -> Option<&Arc<Self>> {
        self.properties.get(name).or(self.additional_properties.as_ref())
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Bounds {
    fn read(document: &Value) -> Self {
        let number = |name: &str| document[name].as_f64();
        let count = |name: &str| document[name].as_u64();
        let flag = |name: &str| document[name].as_bool().unwrap_or_default();
        Self {
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
        }
    }
}

impl ListType {
    fn read(document: &Value) -> Self {
        match document["x-kubernetes-list-type"].as_str() {
            Some("set") => Self::Set,
            Some("map") => Self::Map(texts(&document["x-kubernetes-list-map-keys"])),
            _ => Self::Atomic,
        }
    }
}

impl PatchStrategy {
    fn read(document: &Value) -> Self {
        let strategies = document["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
        Self {
            merge: strategies.split(',').any(|strategy| strategy == "merge"),
            retain_keys: strategies.split(',').any(|strategy| strategy == "retainKeys"),
            merge_key: document["x-kubernetes-patch-merge-key"].as_str().map(str::to_owned),
        }
    }
}

impl Rule {
    fn read(document: &Value) -> Self {
        let text = |name: &str| document[name].as_str().map(str::to_owned);
        Self {
            rule: text("rule").unwrap_or_default(),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old_self: document["optionalOldSelf"].as_bool().unwrap_or_default(),
        }
    }
}
