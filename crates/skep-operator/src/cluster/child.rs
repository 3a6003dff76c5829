//! Objects that the operator writes, as it remembers them: in full where they are ours, in name only where they are not.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use skep_api::kind::GROUP;
use skep_api::names::{field_managers, labels};

use super::kind::named_as;

/// An object of a built-in kind `K`.
pub struct Child<K> {
    /// Name, identity, owners, and of an object that is not ours the labels by which a workload is found.
    metadata: ObjectMeta,
    /// The whole object, without what other field managers noted down; of an object that is not ours, `metadata` alone.
    document: Value,
    kind: PhantomData<fn() -> K>,
}

impl<K> Child<K> {
    /// The object as JSON, if it is one of ours.
    pub fn body(&self) -> Option<&Value> {
        self.controller().is_some_and(is_ours).then_some(&self.document)
    }

    /// The controller that owns the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        controller(&self.metadata)
    }
}

/// The reference that says which controller owns an object.
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether a reference names an object of our API group.
pub fn is_ours(owner: &OwnerReference) -> bool {
    owner.api_version.split('/').next() == Some(GROUP)
}

impl<'de, K: kube::Resource<DynamicType = ()>> Deserialize<'de> for Child<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut document = Value::deserialize(deserializer)?;
        let Known { name, namespace, uid, resource_version, deletion_timestamp, owner_references, labels } =
            Known::deserialize(&document["metadata"]).map_err(serde::de::Error::custom)?;
        let mut metadata = ObjectMeta {
            name,
            namespace,
            uid,
            resource_version,
            deletion_timestamp,
            owner_references,
            ..ObjectMeta::default()
        };
        if controller(&metadata).is_some_and(is_ours) {
            forget_others(&mut document["metadata"]);
            // Items of a list do not say what they are.
            document["apiVersion"] = json!(K::api_version(&()));
            document["kind"] = json!(K::kind(&()));
        } else {
            metadata.labels = labels.filter(|found| found.contains_key(labels::TOOLHIVE));
            document = json!({"metadata": metadata});
        }
        Ok(Self { metadata, document, kind: PhantomData })
    }
}

impl<K> Serialize for Child<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

/// What is remembered of the metadata.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
    owner_references: Option<Vec<OwnerReference>>,
    labels: Option<BTreeMap<String, String>>,
}

/// Forgets what other field managers have noted down.
fn forget_others(metadata: &mut Value) {
    if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
        entries.retain(|entry| entry["manager"] == field_managers::OPERATOR && entry["operation"] == "Apply");
    }
}

impl<K> Clone for Child<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), document: self.document.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Child<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A document can be a ConfigMap's, and long.
        formatter.debug_struct("Child").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl<K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>> kube::Resource for Child<K> {
    named_as!(K, metadata);
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn foreign_objects_are_known_by_name_only() {
        let object = |owner: &str| {
            json!({"metadata": {"name": "a", "annotations": {"x": "y"}, "labels": {"l": "m"},
                "managedFields": [{"manager": "kubectl", "operation": "Apply"},
                    {"manager": field_managers::OPERATOR, "operation": "Apply", "fieldsV1": {"f:data": {}}}],
                "ownerReferences": [{"apiVersion": owner, "kind": "K", "name": "o", "uid": "u", "controller": true}]},
                "data": {"key": "value"}})
        };
        let read = |owner: &str| serde_json::from_value::<Child<ConfigMap>>(object(owner)).unwrap();
        let foreign = read("apps/v1");
        assert_eq!((foreign.body(), foreign.metadata.labels.as_ref()), (None, None));
        assert!(foreign.document.get("data").is_none(), "{}", foreign.document);
        let ours = read("toolhive.stacklok.dev/v1beta1");
        let body = ours.body().unwrap();
        assert_eq!((&body["data"], &body["kind"]), (&json!({"key": "value"}), &json!("ConfigMap")));
        assert_eq!(body["metadata"]["managedFields"].as_array().unwrap().len(), 1);
        for child in [foreign, ours] {
            let again: Child<ConfigMap> = serde_json::from_value(serde_json::to_value(&child).unwrap()).unwrap();
            assert_eq!((&again.document, &again.metadata), (&child.document, &child.metadata));
        }
    }
}
