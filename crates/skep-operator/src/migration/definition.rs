//! Which definitions have objects of the past.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::core::ApiResource;
use skep_api::crd::AUTO_MIGRATE_LABEL;
use skep_api::kind::GROUP;
use skep_api::names::labels;

/// Whether a definition of this name is one of our group.
pub(super) fn is_ours(name: &str) -> bool {
    name.strip_suffix(GROUP).is_some_and(|rest| rest.ends_with('.'))
}

/// A definition that once stored its objects in another version.
#[derive(Debug)]
pub(super) struct Outdated {
    /// The objects, in the version that is stored today.
    pub(super) resource: ApiResource,
    pub(super) storage: String,
}

impl Outdated {
    /// Nothing where there is nothing to do, or where it is not ours to do.
    pub(super) fn of(definition: &CustomResourceDefinition) -> Option<Self> {
        let is_marked = definition.labels().get(AUTO_MIGRATE_LABEL).is_some_and(|value| value == labels::TRUE);
        let spec = &definition.spec;
        if !is_marked || spec.group != GROUP {
            return None;
        }
        let Some(storage) = spec.versions.iter().find(|version| version.storage).map(|version| version.name.clone())
        else {
            tracing::warn!(name = definition.name_any(), "not migrated: no version is stored");
            return None;
        };
        let stored = definition.status.as_ref().and_then(|status| status.stored_versions.as_deref());
        if stored.unwrap_or_default() == [storage.as_str()] {
            return None;
        }
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: storage.clone(),
            api_version: format!("{GROUP}/{storage}"),
            kind: spec.names.kind.clone(),
            plural: spec.names.plural.clone(),
        };
        Some(Self { resource, storage })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn storage(group: &str, label: &str, stored: &Value) -> Option<String> {
        let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage});
        let object = json!({"metadata": {"name": "d", "labels": {AUTO_MIGRATE_LABEL: label}},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "K", "plural": "ks"},
                "versions": [version("v1alpha1", false), version("v1beta1", true)]},
            "status": {"storedVersions": stored}});
        Outdated::of(&serde_json::from_value(object).unwrap()).map(|outdated| outdated.resource.api_version)
    }

    #[test]
    fn only_marked_definitions_of_ours_with_a_past_are_looked_at() {
        let both = json!(["v1alpha1", "v1beta1"]);
        let ours = Some(format!("{GROUP}/v1beta1"));
        assert_eq!(storage(GROUP, "true", &both), ours);
        assert_eq!(storage(GROUP, "true", &json!(["v1alpha1"])), ours);
        assert_eq!(storage(GROUP, "true", &json!(["v1beta1"])), None);
        assert_eq!(storage(GROUP, "false", &both), None);
        assert_eq!(storage("example.com", "true", &both), None);
        assert!(is_ours("relics.toolhive.stacklok.dev"));
        assert!(!is_ours("relics.nottoolhive.stacklok.dev"));
    }
}
