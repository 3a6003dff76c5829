//! Objects of one kind: read from the shared cache, written through the client.

use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use skep_control::{Cache, Key};

use super::error::{ControllerError, found};

/// The kinds that the controllers know by type, and where their objects live.
pub(super) trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
    /// The objects of one namespace; for cluster-wide kinds the namespace does not matter.
    fn api(client: Client, namespace: &str) -> Api<Self>;
}

macro_rules! kinds {
    (namespaced: $($namespaced:ty),+; cluster: $($cluster:ty),+) => {
        $(impl Kind for $namespaced {
            fn api(client: Client, namespace: &str) -> Api<Self> {
                Api::namespaced(client, namespace)
            }
        })+
        $(impl Kind for $cluster {
            fn api(client: Client, _: &str) -> Api<Self> {
                Api::all(client)
            }
        })+
    };
}

kinds! {
    namespaced: ConfigMap, ControllerRevision, Deployment, EndpointSlice, Endpoints, PersistentVolumeClaim, Pod,
        ReplicaSet, Secret, Service, ServiceAccount, StatefulSet;
    cluster: Namespace, Node, PersistentVolume
}

/// Objects of kind `K`. Every write returns only after the cache has caught up with it.
pub(super) struct Objects<K> {
    client: Client,
    cache: Arc<Cache<K>>,
}

impl<K> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), cache: self.cache.clone() }
    }
}

impl<K: Kind> Objects<K> {
    pub(super) fn new(client: Client, cache: Arc<Cache<K>>) -> Self {
        Self { client, cache }
    }

    pub(super) fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.cache.get(key)
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.cache.in_namespace(namespace)
    }

    pub(super) fn api(&self, namespace: &str) -> Api<K> {
        K::api(self.client.clone(), namespace)
    }

    /// Asks the server, not the cache.
    pub(super) async fn live(&self, key: &Key) -> Result<Option<K>, ControllerError> {
        found(self.api(&key.namespace).get(&key.name).await.map_err(Into::into))
    }

    pub(super) async fn create(&self, object: &K) -> Result<K, ControllerError> {
        let namespace = object.namespace().unwrap_or_default();
        let created = self.api(&namespace).create(&PostParams::default(), object).await?;
        self.cache.until_seen(&created).await;
        Ok(created)
    }

    /// Replaces the object if nobody has changed it since it was read.
    pub(super) async fn replace(&self, object: &K) -> Result<K, ControllerError> {
        let Key { namespace, name } = Key::of(object);
        let replaced = self.api(&namespace).replace(&name, &PostParams::default(), object).await?;
        self.cache.until_seen(&replaced).await;
        Ok(replaced)
    }

    /// As [`Self::replace`], for the status.
    pub(super) async fn replace_status(&self, object: &K) -> Result<K, ControllerError> {
        let Key { namespace, name } = Key::of(object);
        let replaced = self.api(&namespace).replace_status(&name, &PostParams::default(), object).await?;
        self.cache.until_seen(&replaced).await;
        Ok(replaced)
    }

    /// A JSON merge patch.
    pub(super) async fn patch(&self, key: &Key, patch: &Value) -> Result<K, ControllerError> {
        let api = self.api(&key.namespace);
        let patched = api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        self.cache.until_seen(&patched).await;
        Ok(patched)
    }

    /// Deletes this very object; one that is already gone is fine.
    pub(super) async fn delete(&self, object: &K, parameters: DeleteParams) -> Result<(), ControllerError> {
        let Key { namespace, name } = Key::of(object);
        let parameters = parameters.preconditions(Preconditions { uid: object.uid(), resource_version: None });
        if found(self.api(&namespace).delete(&name, &parameters).await.map_err(Into::into))?.is_some() {
            self.cache.until_deleting(object).await;
        }
        Ok(())
    }
}
