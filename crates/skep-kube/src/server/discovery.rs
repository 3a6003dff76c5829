//! What is served, told in the two forms that clients ask for: list by list, or everything at once.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::registry::{Registry, Resource, Subresource, Version, group_version};

/// `/api`
pub fn legacy_versions(registry: &Registry, address: &str) -> Value {
    let versions = registry.groups().remove("").unwrap_or_default();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// `/apis`
pub fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|(group, _)| !group.is_empty())
        .map(|(group, versions)| group_members(group, versions))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP`
pub fn group(registry: &Registry, group: &str) -> Option<Value> {
    let groups = registry.groups();
    let versions = groups.get(group).filter(|_| !group.is_empty())?;
    let mut document = json!({ "kind": "APIGroup", "apiVersion": "v1" });
    if let (Some(document), Value::Object(members)) = (document.as_object_mut(), group_members(group, versions)) {
        document.extend(members);
    }
    Some(document)
}

fn group_members(group: &str, versions: &[String]) -> Value {
    let listed: Vec<Value> = versions
        .iter()
        .map(|version| json!({ "groupVersion": group_version(group, version), "version": version }))
        .collect();
    json!({ "name": group, "versions": listed, "preferredVersion": listed.first() })
}

/// `/api/v1` and `/apis/GROUP/VERSION`
pub fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let served: Vec<_> = registry
        .all()
        .into_iter()
        .filter(|resource| resource.group == group && resource.version(version).is_some())
        .collect();
    if served.is_empty() {
        return None;
    }
    let mut listed = Vec::new();
    for resource in &served {
        let Some(in_version) = resource.version(version) else {
            continue;
        };
        listed.push(plain(resource));
        listed.extend(in_version.subresources.iter().map(|subresource| plain_part(resource, subresource)));
    }
    let mut document = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version(group, version),
        "resources": listed,
    });
    // The real server leaves it out in the core group.
    if !group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    Some(document)
}

fn plain(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    if resource.verbs.iter().any(|verb| verb == "list") {
        entry["storageVersionHash"] = storage_version_hash(resource).into();
    }
    entry
}

fn plain_part(resource: &Resource, part: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, part.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": part.kind,
        "verbs": part.verbs,
    });
    if let Some((group, version)) = &part.group_version {
        entry["group"] = group.as_str().into();
        entry["version"] = version.as_str().into();
    }
    entry
}

/// Changes when objects begin to be stored in another version; opaque otherwise.
fn storage_version_hash(resource: &Resource) -> String {
    use base64::Engine as _;
    let text = format!("{}/{}/{}", resource.group, resource.storage_version, resource.kind);
    base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(text.as_bytes())[..8])
}

/// `/api` or `/apis` in the aggregated form: all versions with all their resources.
pub fn aggregated(registry: &Registry, core: bool) -> Value {
    let items: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| aggregated_version(registry, group, version)).collect();
            let metadata = if core { json!({}) } else { json!({ "name": group }) };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_version(registry: &Registry, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = registry
        .all()
        .iter()
        .filter(|resource| resource.group == group)
        .filter_map(|resource| Some(aggregated_resource(resource, resource.version(version)?)))
        .collect();
    json!({ "version": version, "resources": resources, "freshness": "Current" })
}

fn aggregated_resource(resource: &Resource, version: &Version) -> Value {
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": { "group": resource.group, "version": version.name, "kind": resource.kind },
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        entry["categories"] = resource.categories.clone().into();
    }
    let parts: Vec<Value> = version
        .subresources
        .iter()
        .map(|part| {
            let (group, version) = part.group_version.clone().unwrap_or((resource.group.clone(), version.name.clone()));
            json!({
                "subresource": part.name,
                "responseKind": { "group": group, "version": version, "kind": part.kind },
                "verbs": part.verbs,
            })
        })
        .collect();
    if !parts.is_empty() {
        entry["subresources"] = parts.into();
    }
    entry
}
