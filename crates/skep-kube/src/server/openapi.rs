//! `/openapi/v3`: what kubectl explains objects by, and how it learns that the server validates fields.

mod custom;
pub mod v2;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::registry::{Origin, Registry, Resource, Version, group_version};
use crate::builtin;

/// The parameters of writes that clients look for.
const WRITE_PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

/// The methods of a path, what OpenAPI calls their actions, and the verbs that allow them.
const OF_OBJECTS: [(&str, &str, &str); 4] =
    [("get", "get", "get"), ("put", "put", "update"), ("patch", "patch", "patch"), ("delete", "delete", "delete")];
const OF_COLLECTIONS: [(&str, &str, &str); 2] = [("get", "list", "list"), ("post", "post", "create")];

/// Which documents there are. The hash in the address changes with the document, so that clients may cache it.
pub fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let hash = fingerprint(registry, &group, &version);
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({ "serverRelativeURL": url }));
        }
    }
    json!({ "paths": paths })
}

fn fingerprint(registry: &Registry, group: &str, version: &str) -> String {
    let mut digest = Sha256::new();
    for (resource, in_version) in
        served(registry, group, version).iter().filter_map(|resource| Some((resource, resource.version(version)?)))
    {
        digest.update(resource.plural.as_bytes());
        digest.update(in_version.published.to_string().as_bytes());
    }
    hex::encode_upper(&digest.finalize()[..16])
}

fn served(registry: &Registry, group: &str, version: &str) -> Vec<std::sync::Arc<Resource>> {
    let all = registry.all().into_iter();
    all.filter(|resource| resource.group == group && resource.version(version).is_some()).collect()
}

/// The document of one group and version.
pub fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let resources = served(registry, group, version);
    if resources.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in &resources {
        let Some(in_version) = resource.version(version) else {
            continue;
        };
        let name = add_schemas(resource, in_version, &mut schemas);
        add_paths(resource, version, &name, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.36.3" },
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

fn kind_of(resource: &Resource, version: &str) -> Value {
    json!({ "group": resource.group, "version": version, "kind": resource.kind })
}

/// Adds what describes a resource and returns the name of its schema.
fn add_schemas(resource: &Resource, version: &Version, schemas: &mut Map<String, Value>) -> String {
    let gvk = json!([kind_of(resource, &version.name)]);
    match resource.origin {
        Origin::BuiltIn(kind) => {
            schemas.extend(builtin::definitions(kind.group, kind.kind));
            let name = kind.definition_name();
            if let Some(schema) = schemas.get_mut(&name) {
                schema["x-kubernetes-group-version-kind"] = gvk;
            }
            name
        }
        Origin::Custom => {
            let name = custom_name(resource, &version.name);
            let common = custom::add_common(schemas);
            let mut schema = custom::published(&version.published, &common);
            schema["x-kubernetes-group-version-kind"] = gvk;
            schemas.insert(name.clone(), schema);
            name
        }
    }
}

/// `dev.stacklok.toolhive.v1beta1.MCPServer`
fn custom_name(resource: &Resource, version: &str) -> String {
    let mut parts: Vec<&str> = resource.group.split('.').rev().collect();
    parts.extend([version, &resource.kind]);
    parts.join(".")
}

fn add_paths(resource: &Resource, version: &str, schema: &str, paths: &mut Map<String, Value>) {
    let root = if resource.group.is_empty() { "/api".to_owned() } else { "/apis".to_owned() };
    let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}/{}{namespace}/{}", group_version(&resource.group, version), resource.plural);
    let operation = |action: &str| {
        let reference = json!({ "$ref": format!("#/components/schemas/{schema}") });
        json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind_of(resource, version),
            "parameters": WRITE_PARAMETERS.map(parameter),
            "responses": { "200": { "description": "OK", "content": { "application/json": { "schema": reference } } } },
        })
    };
    let mut add = |path: String, offered: &[(&str, &str, &str)]| {
        let allowed = offered.iter().filter(|(_, _, verb)| resource.allows(verb));
        let operations: Map<String, Value> =
            allowed.map(|(method, action, _)| ((*method).to_owned(), operation(action))).collect();
        if !operations.is_empty() {
            paths.insert(path, operations.into());
        }
    };
    add(format!("{collection}/{{name}}"), &OF_OBJECTS);
    add(collection, &OF_COLLECTIONS);
}

fn parameter(name: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": { "type": "string", "uniqueItems": true } })
}
