//! The schemas of built-in kinds: types and descriptions from k8s-openapi, everything else from `facts.tsv`.
//!
//! `default`, `enum_` and `required` are what OpenAPI documents show ([`super::definitions`]). The server does not default or refuse built-in
//! objects by them: that is for [`super::default`] and [`super::validate`].

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::{
    apps, authentication, authorization, autoscaling, coordination, core, discovery, events, networking, policy, rbac,
    scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use parking_lot::Mutex;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use super::facts::{self, Definition, Member};
use crate::schema::{ListType, PatchStrategy, Schema, Type};

/// Definitions by their full names. Kinds share them: there is one `ObjectMeta`, and one `Container`.
static BUILT: LazyLock<Mutex<HashMap<String, Arc<Schema>>>> = LazyLock::new(Mutex::default);

/// The schema of a built-in kind, made when it is first asked for.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    let row = super::find(group, version, kind)?;
    let name = row.definition_name();
    let mut built = BUILT.lock();
    if let Some(schema) = built.get(&name) {
        return Some(Arc::clone(schema));
    }
    let mut generator = SchemaGenerator::default();
    describe(group, kind, &mut generator);
    let definitions = generator.take_definitions(false);
    let mut builder = Builder { definitions: &definitions, built: &mut built, open: Vec::new() };
    Some(builder.definition(&name))
}

/// Has k8s-openapi describe a kind and all that it is made of.
pub(super) fn describe(group: &str, kind: &str, generator: &mut SchemaGenerator) {
    match (group, kind) {
        ("", "ConfigMap") => generator.subschema_for::<core::v1::ConfigMap>(),
        ("", "Endpoints") => generator.subschema_for::<core::v1::Endpoints>(),
        ("", "Event") => generator.subschema_for::<core::v1::Event>(),
        ("", "Namespace") => generator.subschema_for::<core::v1::Namespace>(),
        ("", "Node") => generator.subschema_for::<core::v1::Node>(),
        ("", "PersistentVolume") => generator.subschema_for::<core::v1::PersistentVolume>(),
        ("", "PersistentVolumeClaim") => generator.subschema_for::<core::v1::PersistentVolumeClaim>(),
        ("", "Pod") => generator.subschema_for::<core::v1::Pod>(),
        ("", "Secret") => generator.subschema_for::<core::v1::Secret>(),
        ("", "Service") => generator.subschema_for::<core::v1::Service>(),
        ("", "ServiceAccount") => generator.subschema_for::<core::v1::ServiceAccount>(),
        ("apps", "ControllerRevision") => generator.subschema_for::<apps::v1::ControllerRevision>(),
        ("apps", "Deployment") => generator.subschema_for::<apps::v1::Deployment>(),
        ("apps", "ReplicaSet") => generator.subschema_for::<apps::v1::ReplicaSet>(),
        ("apps", "StatefulSet") => generator.subschema_for::<apps::v1::StatefulSet>(),
        (_, "HorizontalPodAutoscaler") => generator.subschema_for::<autoscaling::v2::HorizontalPodAutoscaler>(),
        (_, "PodDisruptionBudget") => generator.subschema_for::<policy::v1::PodDisruptionBudget>(),
        (_, "ClusterRole") => generator.subschema_for::<rbac::v1::ClusterRole>(),
        (_, "ClusterRoleBinding") => generator.subschema_for::<rbac::v1::ClusterRoleBinding>(),
        (_, "Role") => generator.subschema_for::<rbac::v1::Role>(),
        (_, "RoleBinding") => generator.subschema_for::<rbac::v1::RoleBinding>(),
        (_, "SelfSubjectReview") => generator.subschema_for::<authentication::v1::SelfSubjectReview>(),
        (_, "TokenReview") => generator.subschema_for::<authentication::v1::TokenReview>(),
        (_, "LocalSubjectAccessReview") => generator.subschema_for::<authorization::v1::LocalSubjectAccessReview>(),
        (_, "SelfSubjectAccessReview") => generator.subschema_for::<authorization::v1::SelfSubjectAccessReview>(),
        (_, "SelfSubjectRulesReview") => generator.subschema_for::<authorization::v1::SelfSubjectRulesReview>(),
        (_, "SubjectAccessReview") => generator.subschema_for::<authorization::v1::SubjectAccessReview>(),
        (_, "Lease") => generator.subschema_for::<coordination::v1::Lease>(),
        (_, "EndpointSlice") => generator.subschema_for::<discovery::v1::EndpointSlice>(),
        ("events.k8s.io", "Event") => generator.subschema_for::<events::v1::Event>(),
        (_, "Ingress") => generator.subschema_for::<networking::v1::Ingress>(),
        (_, "IngressClass") => generator.subschema_for::<networking::v1::IngressClass>(),
        (_, "NetworkPolicy") => generator.subschema_for::<networking::v1::NetworkPolicy>(),
        (_, "PriorityClass") => generator.subschema_for::<scheduling::v1::PriorityClass>(),
        (_, "StorageClass") => generator.subschema_for::<storage::v1::StorageClass>(),
        (_, "CustomResourceDefinition") => generator.subschema_for::<apiextensions::v1::CustomResourceDefinition>(),
        _ => return,
    };
}

struct Builder<'a> {
    definitions: &'a Map<String, Value>,
    built: &'a mut HashMap<String, Arc<Schema>>,
    /// The definitions being built, outermost first: one that leads back to itself is cut there.
    open: Vec<String>,
}

impl Builder<'_> {
    fn definition(&mut self, name: &str) -> Arc<Schema> {
        if let Some(schema) = self.built.get(name) {
            return Arc::clone(schema);
        }
        let document = self.definitions.get(name).unwrap_or(&Value::Null);
        let description = document["description"].as_str().map(str::to_owned);
        if self.open.iter().any(|open| open == name) {
            return Arc::new(Schema { type_: Some(Type::Object), description, ..anything() });
        }
        let facts = facts::definition(facts::short_name(name));
        let schema = match (facts, one_value(name)) {
            (_, Some(scalar)) => Schema { description, ..scalar },
            (None, None) => Schema::read(document),
            (Some(facts), None) => {
                self.open.push(name.to_owned());
                let schema = self.structure(document, facts);
                self.open.pop();
                schema
            }
        };
        let schema = Arc::new(schema);
        self.built.insert(name.to_owned(), Arc::clone(&schema));
        schema
    }

    fn structure(&mut self, document: &Value, facts: &Definition) -> Schema {
        let properties = document["properties"].as_object().into_iter().flatten().map(|(name, property)| {
            let place = self.place(property);
            let place = match facts.members.get(name.as_str()) {
                Some(facts) => with_facts(place, facts),
                None => place,
            };
            (name.clone(), Arc::new(place))
        });
        Schema {
            type_: Some(Type::Object),
            description: document["description"].as_str().map(str::to_owned),
            properties: properties.collect(),
            required: list(facts.required),
            atomic_map: facts.atomic,
            ..Schema::default()
        }
    }

    fn place(&mut self, property: &Value) -> Schema {
        if let Some(reference) = property["$ref"].as_str() {
            let definition = self.definition(reference.rsplit('/').next().unwrap_or_default());
            let mut place = Schema::clone(&definition);
            if let Some(description) = property["description"].as_str() {
                place.description = Some(description.to_owned());
            }
            return place;
        }
        let mut place = Schema {
            type_: property["type"].as_str().and_then(Type::read),
            format: property["format"].as_str().map(str::to_owned),
            description: property["description"].as_str().map(str::to_owned),
            ..Schema::default()
        };
        for (below, document) in [
            (&mut place.items, &property["items"]),
            (&mut place.additional_properties, &property["additionalProperties"]),
        ] {
            if document.is_object() {
                *below = Some(self.below(document));
            }
        }
        place
    }

    /// An item of a list or a value of a map: shared with others where it is a definition.
    fn below(&mut self, document: &Value) -> Arc<Schema> {
        match document["$ref"].as_str() {
            Some(reference) => self.definition(reference.rsplit('/').next().unwrap_or_default()),
            None => Arc::new(self.place(document)),
        }
    }
}

fn with_facts(mut place: Schema, facts: &Member) -> Schema {
    place.list_type = match facts.list {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(list(facts.keys)),
        _ => ListType::Atomic,
    };
    place.atomic_map = facts.map.map_or(place.atomic_map, |map| map == "atomic");
    let strategies = facts.patch.unwrap_or_default();
    place.patch = PatchStrategy {
        merge: strategies.split(',').any(|strategy| strategy == "merge"),
        retain_keys: strategies.split(',').any(|strategy| strategy == "retainKeys"),
        merge_key: facts.merge_key.map(str::to_owned),
    };
    place.default = json(facts.default);
    place.enum_ = facts.enum_.map(texts);
    // An item's own facts are worth a copy only when it is a scalar: structs all default to {}.
    if let Some(item) = place.items.as_ref().filter(|item| item.properties.is_empty()) {
        let item =
            Schema { default: json(facts.item_default), enum_: facts.item_enum.map(texts), ..Schema::clone(item) };
        place.items = Some(Arc::new(item));
    }
    let knows_values = facts.value_default.is_some() || facts.value_enum.is_some();
    let value = place.additional_properties.as_ref().filter(|value| knows_values && value.properties.is_empty());
    if let Some(value) = value {
        let (default, enum_) = (json(facts.value_default), facts.value_enum.map(texts));
        place.additional_properties = Some(Arc::new(Schema { default, enum_, ..Schema::clone(value) }));
    }
    place
}

pub(super) fn json(text: Option<&str>) -> Option<Value> {
    text.and_then(|text| serde_json::from_str(text).ok())
}

pub(super) fn list(text: Option<&str>) -> Vec<String> {
    text.into_iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
}

pub(super) fn texts(text: &str) -> Vec<Value> {
    text.split(',').map(Value::from).collect()
}

/// Any JSON.
fn anything() -> Schema {
    Schema { preserve_unknown_fields: true, ..Schema::default() }
}

/// Definitions that stand for a single value, whatever their description says.
pub(super) fn one_value(name: &str) -> Option<Schema> {
    let either = |first, second| {
        [first, second].map(|type_| Schema { type_: Some(type_), ..Schema::default() }).into_iter().collect()
    };
    let (_, kind) = name.rsplit_once('.')?;
    Some(match kind {
        "Quantity" => Schema { one_of: either(Type::String, Type::Number), ..Schema::default() },
        "IntOrString" => Schema {
            format: Some("int-or-string".to_owned()),
            int_or_string: true,
            one_of: either(Type::Integer, Type::String),
            ..Schema::default()
        },
        "Time" | "MicroTime" => {
            Schema { type_: Some(Type::String), format: Some("date-time".to_owned()), ..Schema::default() }
        }
        "FieldsV1" | "RawExtension" => Schema { type_: Some(Type::Object), ..anything() },
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => anything(),
        _ => return None,
    })
}
