//! The CustomResourceDefinition of each kind, as the document that is installed in a cluster.

use serde_json::{Value, json};

use crate::kind::{Definition, GROUP, Kind, V1ALPHA1, V1BETA1, Versions};
use crate::{kinds, schema};

/// The category under which `kubectl get toolhive` lists every kind.
pub const CATEGORY: &str = "toolhive";
/// Tells a storage-version migrator that it may rewrite stored objects of the kind.
pub const AUTO_MIGRATE_LABEL: &str = "toolhive.stacklok.dev/auto-migrate-storage-version";

const ALPHA_WARNING: &str = "toolhive.stacklok.dev/v1alpha1 is deprecated; use v1beta1";

/// A kind without its type, for whoever treats all kinds alike.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub definition: Definition,
    document: fn() -> Value,
}

impl Entry {
    const fn of<K: Kind>() -> Self {
        Self { definition: K::DEFINITION, document: document::<K> }
    }

    /// The kind's CustomResourceDefinition as a JSON document.
    pub fn document(&self) -> Value {
        (self.document)()
    }

    /// Whether a user means this kind: by its kind, plural, singular, a short name or the name of its CRD, in any case.
    pub fn answers_to(&self, name: &str) -> bool {
        self.names().any(|own| own.eq_ignore_ascii_case(name)) || self.definition.crd_name().eq_ignore_ascii_case(name)
    }

    /// Every name of the kind.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        // The singular is the kind in lower case, so that a comparison without case needs no third name.
        [self.definition.kind, self.definition.plural].into_iter().chain(self.definition.short_names.iter().copied())
    }
}

/// All kinds, in the order of their names.
pub const ALL: &[Entry] = &[
    Entry::of::<kinds::EmbeddingServer>(),
    Entry::of::<kinds::MCPAuthzConfig>(),
    Entry::of::<kinds::MCPExternalAuthConfig>(),
    Entry::of::<kinds::MCPGroup>(),
    Entry::of::<kinds::MCPOIDCConfig>(),
    Entry::of::<kinds::MCPRegistry>(),
    Entry::of::<kinds::MCPRemoteProxy>(),
    Entry::of::<kinds::MCPServer>(),
    Entry::of::<kinds::MCPServerEntry>(),
    Entry::of::<kinds::MCPTelemetryConfig>(),
    Entry::of::<kinds::MCPToolConfig>(),
    Entry::of::<kinds::MCPWebhookConfig>(),
    Entry::of::<kinds::VirtualMCPCompositeToolDefinition>(),
    Entry::of::<kinds::VirtualMCPServer>(),
];

/// The definition of one kind as a JSON document, with the members of every object in the order of their names.
pub fn document<K: Kind>() -> Value {
    let definition = K::DEFINITION;
    let schema = root_schema::<K>();
    let versions: Vec<Value> =
        served(&definition).iter().map(|version| version.document(&definition, &schema)).collect();
    let mut document = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": definition.crd_name(),
            "labels": { AUTO_MIGRATE_LABEL: "true" },
        },
        "spec": {
            "group": GROUP,
            "names": {
                "categories": [CATEGORY],
                "kind": definition.kind,
                "listKind": format!("{}List", definition.kind),
                "plural": definition.plural,
                "shortNames": definition.short_names,
                "singular": definition.singular(),
            },
            "scope": "Namespaced",
            "versions": versions,
        },
    });
    document.sort_all_objects();
    document
}

/// The structural schema of a kind's root object.
pub fn root_schema<K: Kind>() -> Value {
    let mut schema = json!({
        "description": schema::paragraphs(K::DEFINITION.description),
        "type": "object",
        "properties": {
            "apiVersion": {
                "description": "The group and version that this document is written in.",
                "type": "string",
            },
            "kind": {
                "description": "The kind of the object.",
                "type": "string",
            },
            "metadata": { "type": "object" },
            "spec": schema::of::<K::Spec>(),
            "status": schema::of::<K::Status>(),
        },
    });
    schema.sort_all_objects();
    schema
}

/// A version in which a kind is served.
struct Served {
    name: &'static str,
    storage: bool,
    deprecation: Option<&'static str>,
}

fn served(definition: &Definition) -> Vec<Served> {
    match definition.versions {
        Versions::BetaAndDeprecatedAlpha => vec![
            Served { name: V1ALPHA1, storage: false, deprecation: Some(ALPHA_WARNING) },
            Served { name: V1BETA1, storage: true, deprecation: None },
        ],
        Versions::Deprecated(warning) => vec![
            Served { name: V1ALPHA1, storage: false, deprecation: Some(warning) },
            Served { name: V1BETA1, storage: true, deprecation: Some(warning) },
        ],
        Versions::AlphaOnly => vec![Served { name: V1ALPHA1, storage: true, deprecation: None }],
    }
}

impl Served {
    fn document(&self, definition: &Definition, schema: &Value) -> Value {
        let columns: Vec<Value> = definition
            .columns
            .iter()
            .map(|column| json!({ "name": column.name, "type": column.type_, "jsonPath": column.json_path }))
            .collect();
        let mut subresources = json!({ "status": {} });
        if let Some(scale) = definition.scale {
            subresources["scale"] = json!({
                "specReplicasPath": scale.spec_replicas_path,
                "statusReplicasPath": scale.status_replicas_path,
                "labelSelectorPath": scale.label_selector_path,
            });
        }
        let mut version = json!({
            "name": self.name,
            "served": true,
            "storage": self.storage,
            "additionalPrinterColumns": columns,
            "schema": { "openAPIV3Schema": schema },
            "subresources": subresources,
        });
        if let Some(warning) = self.deprecation {
            version["deprecated"] = true.into();
            version["deprecationWarning"] = warning.into();
        }
        version
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    use super::*;

    #[test]
    fn kinds_are_listed_in_the_order_of_their_names() {
        let kinds: Vec<&str> = ALL.iter().map(|entry| entry.definition.kind).collect();
        assert_eq!(kinds.len(), 14);
        assert!(kinds.is_sorted(), "{kinds:?}");
    }

    #[test]
    fn every_definition_is_one_that_kubernetes_can_read() {
        for entry in ALL {
            let typed: CustomResourceDefinition = serde_json::from_value(entry.document()).unwrap();
            assert_eq!(typed.metadata.name, Some(entry.definition.crd_name()));
            let stored: Vec<String> =
                typed.spec.versions.into_iter().filter(|version| version.storage).map(|version| version.name).collect();
            assert_eq!(stored, [entry.definition.storage_version()]);
        }
    }

    #[test]
    fn versions_of_a_kind_share_one_schema() {
        for entry in ALL {
            let document = entry.document();
            let versions = document["spec"]["versions"].as_array().unwrap();
            assert!(
                versions.iter().all(|version| version["schema"] == versions[0]["schema"]),
                "{}",
                entry.definition.kind
            );
        }
    }

    /// `kubectl explain` shows these.
    #[test]
    fn every_field_is_described_in_a_sentence() {
        for entry in ALL {
            let document = entry.document();
            let schema = document.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap();
            for part in ["spec", "status"] {
                assert_described(&format!("{} {part}", entry.definition.kind), &schema["properties"][part]);
            }
        }
    }

    fn assert_described(path: &str, schema: &Value) {
        let description = schema["description"].as_str().unwrap_or_default();
        let sentence = description.split("\n\n").next().unwrap_or_default();
        assert!(sentence.ends_with(['.', ')']) && sentence.len() > 12, "{path}: {description:?}");
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            assert_described(&format!("{path}.{name}"), property);
        }
        for (name, property) in schema["items"]["properties"].as_object().into_iter().flatten() {
            assert_described(&format!("{path}[].{name}"), property);
        }
    }

    #[test]
    fn a_kind_answers_to_all_its_names_in_any_case() {
        let find = |name: &str| ALL.iter().find(|entry| entry.answers_to(name)).map(|entry| entry.definition.kind);
        for name in ["MCPServer", "mcpserver", "MCPSERVERS", "mcpservers.toolhive.stacklok.dev"] {
            assert_eq!(find(name), Some("MCPServer"));
        }
        assert_eq!(find("vmcp"), Some("VirtualMCPServer"));
        assert_eq!(find("mcp"), None);
    }
}
