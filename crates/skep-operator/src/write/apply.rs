//! Children: objects that exist because a custom resource does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use skep_api::kind::Kind;
use skep_api::names::field_managers;
use skep_control::Key;

use super::fields::{carries, has_gone};
use super::possess::{claim, take_over};
use crate::cluster::{Child, ChildKind, Cluster, Written};
use crate::failure::Failure;

/// What became of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was what it should be; nothing was sent.
    Unchanged,
    /// It was created or changed.
    Written,
}

/// Why a child was not written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It has another controller: it is left alone.
    #[error(
        "{kind} {name} exists and belongs to {owner}; rename this object, or delete that {kind} if nobody needs it"
    )]
    NotOurs { kind: String, name: String, owner: String },
    #[error(transparent)]
    Failure(#[from] Failure),
}

impl From<kube::Error> for ApplyError {
    fn from(error: kube::Error) -> Self {
        Self::Failure(error.into())
    }
}

/// The reference that makes an object the controller of its children.
pub fn owner_reference<O: Kind>(owner: &O) -> OwnerReference {
    OwnerReference {
        api_version: O::api_version(&()).into_owned(),
        kind: O::DEFINITION.kind.to_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Whether an object is the controller of a child.
pub fn is_controlled_by<O: Kind, K>(child: &Child<K>, owner: &O) -> bool {
    child.controller().is_some_and(|controller| Some(&controller.uid) == owner.uid().as_ref())
}

/// Makes a child of `owner` carry everything that `desired` says, and nothing of what an earlier `desired` said.
///
/// A child that no controller owns becomes one of `owner`: it was left behind, or restored from a backup. Fields of others
/// stay. Nothing is sent when nothing would change. A `desired` with a resource version was made of what
/// was there, and is refused when that has changed.
pub async fn apply<O: Kind, K: ChildKind>(cluster: &Cluster, owner: &O, desired: &K) -> Result<Applied, ApplyError> {
    let namespace = owner.namespace().unwrap_or_default();
    let key = Key::new(namespace.as_str(), desired.name_any());
    let cache = K::cache(cluster);
    let mut document = document(owner, desired)?;
    let mut ours = None;
    if let Some(live) = cache.get(&key) {
        if let Some(other) = live.controller().filter(|controller| Some(&controller.uid) != owner.uid().as_ref()) {
            let owner = format!("{} {}", other.kind, other.name);
            return Err(ApplyError::NotOurs { kind: K::kind(&()).into_owned(), name: key.name, owner });
        }
        // Another object of this name, which somebody may have made meanwhile, is not meant.
        document["metadata"]["uid"] = json!(live.uid());
        if live.body().is_some_and(|body| is_up_to_date(body, &document)) {
            return Ok(Applied::Unchanged);
        }
        if !is_applied(&live) {
            take_over(cluster, owner, &live).await?;
        }
        ours = Some(live);
    }
    let written: Written<K> = match send(cluster, &key, &document).await {
        // What somebody else has put among ours may be what is wrong with the whole.
        Err(kube::Error::Api(refusal)) if refusal.code == 422 => match &ours {
            Some(live) if claim(cluster, owner, live).await? => send(cluster, &key, &document).await?,
            _ => return Err(kube::Error::Api(refusal).into()),
        },
        sent => sent?,
    };
    cache.until_seen(&written).await;
    Ok(Applied::Written)
}

async fn send<K: ChildKind>(cluster: &Cluster, key: &Key, document: &Value) -> Result<Written<K>, kube::Error> {
    let api: Api<Written<K>> = Api::namespaced(cluster.client.clone(), &key.namespace);
    let params = PatchParams::apply(field_managers::OPERATOR).force();
    api.patch(&key.name, &params, &Patch::Apply(document)).await
}

/// The child as it is sent: complete, with its owner.
fn document<O: Kind, K: ChildKind>(owner: &O, desired: &K) -> Result<Value, Failure> {
    let mut document = serde_json::to_value(desired)?;
    document["apiVersion"] = json!(K::api_version(&()));
    document["kind"] = json!(K::kind(&()));
    document["metadata"]["namespace"] = json!(owner.namespace());
    document["metadata"]["ownerReferences"] = json!([owner_reference(owner)]);
    Ok(document)
}

/// Whether an operator like this one has written a child before.
fn is_applied<K>(live: &Child<K>) -> bool {
    live.body().is_some_and(|body| body["metadata"]["managedFields"][0].is_object())
}

fn is_up_to_date(live: &Value, document: &Value) -> bool {
    // Only our own entry is kept, see `Child`.
    let owned = &live["metadata"]["managedFields"][0]["fieldsV1"];
    owned.is_object() && carries(live, document, Some(owned)) && !has_gone(owned, document)
}
