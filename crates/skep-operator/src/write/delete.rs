//! Children that are not wanted any more.

use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource as _, ResourceExt as _};
use skep_api::kind::Kind;
use skep_control::Key;

use super::is_controlled_by;
use crate::cluster::{Child, ChildKind, Cluster, Written};
use crate::failure::Failure;

/// Deletes a child of `owner` if there is one. An object that somebody else owns stays.
pub async fn delete<O: Kind, K: ChildKind>(cluster: &Cluster, owner: &O, name: &str) -> Result<(), Failure> {
    let key = Key::new(owner.namespace().unwrap_or_default(), name);
    match K::cache(cluster).get(&key).filter(|live| is_controlled_by(live, owner)) {
        Some(live) => remove(cluster, &key, &live).await,
        None => Ok(()),
    }
}

/// Deletes an object beside `owner` if there is one that is meant. Asks the server itself: afterwards nobody looks again.
pub async fn delete_for_good<O: Kind, K: ChildKind>(
    cluster: &Cluster,
    owner: &O,
    name: &str,
    is_meant: impl Fn(&Child<K>) -> bool,
) -> Result<(), Failure> {
    let key = Key::new(owner.namespace().unwrap_or_default(), name);
    let api: Api<Child<K>> = Api::namespaced(cluster.client.clone(), &key.namespace);
    match api.get_opt(name).await?.filter(is_meant) {
        Some(live) => remove(cluster, &key, &live).await,
        None => Ok(()),
    }
}

async fn remove<K: ChildKind>(cluster: &Cluster, key: &Key, live: &Child<K>) -> Result<(), Failure> {
    if live.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    let api: Api<Written<K>> = Api::namespaced(cluster.client.clone(), &key.namespace);
    let preconditions = Preconditions { uid: live.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match api.delete(&key.name, &params).await {
        Ok(_) => K::cache(cluster).until_deleting(live).await,
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
