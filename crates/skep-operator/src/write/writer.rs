//! Writes to custom resources: each kind's controller has the writer of its own kind, and no other.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::conditions::{self, Condition, Statement};
use skep_api::kind::Kind;
use skep_api::names::field_managers;
use skep_control::Cache;

use super::diff::{merge_patch, replaces_a_list};
use crate::cluster::{Packer, Seen, Unreadable, Written};
use crate::controller::Mandate;
use crate::failure::Failure;
use crate::time::now;

/// Writes status and metadata of objects of kind `K`.
///
/// It takes a mandate to make one, and only [`crate::controller::run`] has any; it hands the writer to the controller of `K`
/// alone. A controller that wants to write the status of another kind's objects has nothing to write it with.
pub struct Writer<K: Kind> {
    client: Client,
    cache: Arc<Cache<Seen<K>, Packer>>,
}

impl<K: Kind> fmt::Debug for Writer<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<K: Kind> Writer<K> {
    pub(crate) fn new(_: Mandate<K>, client: Client, cache: Arc<Cache<Seen<K>, Packer>>) -> Self {
        Self { client, cache }
    }

    /// Makes the status of an object what it should be. Only members that differ are sent; nothing is sent when none
    /// does, and the answer is then `false`.
    pub async fn status(&self, object: &K, desired: &K::Status) -> Result<bool, Failure> {
        let before = serde_json::to_value(object.status())?;
        let Some(changes) = merge_patch(&before, &serde_json::to_value(desired)?) else { return Ok(false) };
        self.patch_status(object.meta(), &before, changes).await
    }

    /// Says what is wrong with an object that cannot be read otherwise, and that is news. A kind with a phase says so there,
    /// too.
    pub(crate) async fn unreadable(
        &self,
        object: &Unreadable,
        statement: Statement,
        phase: Option<&str>,
    ) -> Result<bool, Failure> {
        let stated = object.status().get("conditions").cloned().unwrap_or_else(|| json!([]));
        // Conditions that cannot be read either are not ours to keep.
        let before: Vec<Condition> = serde_json::from_value(stated).unwrap_or_default();
        let mut after = before.clone();
        let mut changes = json!({});
        let is_news = conditions::set(&mut after, statement, object.metadata.generation, &now());
        if is_news {
            changes["conditions"] = json!(after);
        }
        if let Some(phase) = phase.filter(|phase| object.status()["phase"] != *phase) {
            changes["phase"] = json!(phase);
        }
        if changes != json!({}) {
            self.patch_status(&object.metadata, object.status(), changes).await?;
        }
        Ok(is_news)
    }

    async fn patch_status(&self, metadata: &ObjectMeta, before: &Value, changes: Value) -> Result<bool, Failure> {
        let is_guarded = replaces_a_list(before, &changes);
        let mut patch = json!({"status": changes});
        if is_guarded {
            // What somebody else added to the list since it was read must not be lost.
            patch["metadata"] = json!({"resourceVersion": metadata.resource_version});
        }
        let name = metadata.name.as_deref().unwrap_or_default();
        let api = self.api(metadata.namespace.as_deref().unwrap_or_default());
        match api.patch_status(name, &params(), &Patch::Merge(&patch)).await {
            Ok(written) => self.cache.until_seen(&written).await,
            // It is gone: there is nothing to tell, and nobody to tell it.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Changes metadata of an object, on the condition that it is still the one that was read.
    pub async fn metadata(&self, object: &K, mut changes: Value) -> Result<(), Failure> {
        changes["resourceVersion"] = json!(object.resource_version());
        let patch = json!({"metadata": changes});
        let api = self.api(&object.namespace().unwrap_or_default());
        match api.patch(&object.name_any(), &params(), &Patch::Merge(&patch)).await {
            Ok(written) => self.cache.until_seen(&written).await,
            // The last finalizer is gone, and the object with it.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Puts a finalizer onto an object, next to those that are there.
    pub async fn add_finalizer(&self, object: &K, finalizer: &str) -> Result<(), Failure> {
        let mut finalizers = object.finalizers().to_vec();
        finalizers.push(finalizer.to_owned());
        self.metadata(object, json!({"finalizers": finalizers})).await
    }

    /// Takes a finalizer off an object and leaves the others.
    pub async fn remove_finalizer(&self, object: &K, finalizer: &str) -> Result<(), Failure> {
        let others: Vec<&String> = object.finalizers().iter().filter(|other| *other != finalizer).collect();
        self.metadata(object, json!({"finalizers": others})).await
    }

    fn api(&self, namespace: &str) -> Api<Written<K>> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Whoever looks at `managedFields` finds the operator there, and not the name of a library.
fn params() -> PatchParams {
    PatchParams { field_manager: Some(field_managers::OPERATOR.to_owned()), ..PatchParams::default() }
}

/// Whether an object carries a finalizer.
pub fn has_finalizer<K: Kind>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|found| found == finalizer)
}
