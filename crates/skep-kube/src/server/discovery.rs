//! What is served, told in the two forms that clients ask for: list by list, or everything at once.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::registry::{Origin, Registry, Resource, Subresource, Version, group_version};

/// `/api`
pub fn legacy_versions(registry: &Registry, address: &str) -> Value {
    let versions = registry.groups().remove("").unwrap_or_default();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }],
    })
}

/// The built-in groups in the order of the real server; those of custom resources follow by name.
const GROUP_ORDER: [&str; 14] = [
    "",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
];

/// The groups and their versions as discovery lists them. Clients that know a resource by its name alone take the first.
fn in_order(registry: &Registry) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<_> = registry.groups().into_iter().collect();
    let position = |group: &str| GROUP_ORDER.iter().position(|known| *known == group).unwrap_or(GROUP_ORDER.len());
    groups.sort_by_key(|(group, _)| position(group));
    groups
}

/// `/apis`
pub fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> = in_order(registry)
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
    if resource.allows("list") {
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
    let (group, version) = match resource.origin {
        Origin::BuiltIn(kind) => kind.kept_as(),
        Origin::Custom => (resource.group.as_str(), resource.storage_version.as_str()),
    };
    let text = format!("{group}/{version}/{}", resource.kind);
    base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(text.as_bytes())[..8])
}

/// `/api` or `/apis` in the aggregated form: all versions with all their resources.
pub fn aggregated(registry: &Registry, core: bool) -> Value {
    let items: Vec<Value> = in_order(registry)
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
    // Built-in kinds of the group and version that the entry stands in do not repeat them.
    let (own_group, own_version) = match resource.origin {
        Origin::BuiltIn(_) => ("", ""),
        Origin::Custom => (resource.group.as_str(), version.name.as_str()),
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": { "group": own_group, "version": own_version, "kind": resource.kind },
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
            let (group, version) = part
                .group_version
                .as_ref()
                .map_or((own_group, own_version), |(group, version)| (group.as_str(), version.as_str()));
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
