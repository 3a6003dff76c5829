//! The answer to a write, as far as a cache has to know of it. The object itself comes by its watch.

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

use super::kind::named_as;

/// An object of kind `K` that was written.
pub struct Written<K> {
    metadata: ObjectMeta,
    kind: PhantomData<fn() -> K>,
}

impl<'de, K> Deserialize<'de> for Written<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            name: Option<String>,
            namespace: Option<String>,
            resource_version: Option<String>,
        }

        let Object { metadata: Metadata { name, namespace, resource_version } } = Object::deserialize(deserializer)?;
        let metadata = ObjectMeta { name, namespace, resource_version, ..ObjectMeta::default() };
        Ok(Self { metadata, kind: PhantomData })
    }
}

impl<K> Clone for Written<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Written<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Written").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl<K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>> kube::Resource for Written<K> {
    named_as!(K, metadata);
}
