//! Who controls what: the one owner reference marked as controller, adoption of strays, release of strangers.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt as _};
use serde_json::json;
use skep_control::{Key, Queue};

use super::error::ControllerError;
use super::objects::{Kind, Objects};

/// The reference that makes `owner` the controller of an object.
pub(super) fn controller_reference<K: Kind>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The controller of an object, if it has one.
pub(super) fn controller_of(object: &ObjectMeta) -> Option<&OwnerReference> {
    let references = object.owner_references.as_deref().unwrap_or_default();
    references.iter().find(|reference| reference.controller == Some(true))
}

pub(super) fn is_controlled_by(object: &ObjectMeta, owner: &ObjectMeta) -> bool {
    owner.uid.is_some() && controller_of(object).is_some_and(|reference| Some(&reference.uid) == owner.uid.as_ref())
}

/// Puts owners into the queue when something changes about them or about what they control. A stray wakes every owner
/// that `wants` it and may adopt it.
pub(super) fn wake_owners<O: Kind, C: Kind>(
    queue: &Arc<Queue<Key>>,
    owners: &Objects<O>,
    children: &Objects<C>,
    wants: impl Fn(&O, &C) -> bool + Send + Sync + 'static,
) {
    let wake = queue.clone();
    owners.cache().on_change(move |owner| wake.add(Key::of(owner)));
    let (wake, candidates) = (queue.clone(), owners.clone());
    children.cache().on_change(move |child| {
        if let Some(owner) = controller_key::<O>(child.meta()) {
            wake.add(owner);
        } else if controller_of(child.meta()).is_none() {
            for owner in candidates.in_namespace(&child.namespace().unwrap_or_default()) {
                if wants(&owner, child) {
                    wake.add(Key::of(owner.as_ref()));
                }
            }
        }
    });
}

/// The controller of an object as a queue key, when it is of this kind.
pub(super) fn controller_key<K: Kind>(object: &ObjectMeta) -> Option<Key> {
    let reference = controller_of(object)?;
    let of_kind = reference.kind == K::kind(&()) && reference.api_version == K::api_version(&());
    of_kind.then(|| Key::new(object.namespace.clone().unwrap_or_default(), reference.name.clone()))
}

pub(super) fn selector_of(selector: &LabelSelector) -> Result<Selector, ControllerError> {
    selector
        .clone()
        .try_into()
        .map_err(|error: kube::core::ParseExpressionError| ControllerError::Selector(error.to_string()))
}

pub(super) fn matches(selector: &Selector, labels: &ObjectMeta) -> bool {
    static NONE: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    selector.matches(labels.labels.as_ref().unwrap_or(&NONE))
}

/// What an owner's selector and an object's labels mean for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Owned,
    Adopt,
    Release,
    Foreign,
}

/// Decides about one candidate of the owner's namespace.
pub(super) fn claim(owner: &ObjectMeta, selected: bool, candidate: &ObjectMeta) -> Claim {
    let owner_leaves = owner.deletion_timestamp.is_some();
    match controller_of(candidate) {
        Some(_) if !is_controlled_by(candidate, owner) => Claim::Foreign,
        Some(_) if selected => Claim::Owned,
        Some(_) if owner_leaves => Claim::Foreign,
        Some(_) => Claim::Release,
        None if owner_leaves || !selected || candidate.deletion_timestamp.is_some() => Claim::Foreign,
        None => Claim::Adopt,
    }
}

/// The objects that `owner` controls, after adopting and releasing what needs it.
pub(super) async fn claim_all<O: Kind, K: Kind>(
    owners: &Objects<O>,
    owner: &O,
    objects: &Objects<K>,
    selects: impl Fn(&ObjectMeta) -> bool,
) -> Result<Vec<Arc<K>>, ControllerError> {
    let mut claimed = Vec::new();
    let mut may_adopt = None;
    for candidate in objects.in_namespace(&owner.namespace().unwrap_or_default()) {
        match claim(owner.meta(), selects(candidate.meta()), candidate.meta()) {
            Claim::Owned => claimed.push(candidate),
            Claim::Foreign => {}
            Claim::Release => release(owner, objects, candidate.as_ref()).await?,
            Claim::Adopt => {
                // The cache may not know yet that the owner is being deleted: ask once before the first adoption.
                let allowed = match may_adopt {
                    Some(allowed) => allowed,
                    None => *may_adopt.insert(still_there(owners, owner).await?),
                };
                if allowed {
                    claimed.push(Arc::new(adopt(owner, objects, candidate.as_ref()).await?));
                }
            }
        }
    }
    Ok(claimed)
}

async fn still_there<O: Kind>(owners: &Objects<O>, owner: &O) -> Result<bool, ControllerError> {
    let live = owners.live(&Key::of(owner)).await?;
    Ok(live.is_some_and(|live| live.uid() == owner.uid() && live.meta().deletion_timestamp.is_none()))
}

async fn adopt<O: Kind, K: Kind>(owner: &O, objects: &Objects<K>, stray: &K) -> Result<K, ControllerError> {
    let mut references = stray.owner_references().to_vec();
    references.push(controller_reference(owner));
    set_references(objects, stray, &references).await
}

async fn release<O: Kind, K: Kind>(owner: &O, objects: &Objects<K>, stranger: &K) -> Result<(), ControllerError> {
    let uid = owner.uid().unwrap_or_default();
    let kept: Vec<_> = stranger.owner_references().iter().filter(|reference| reference.uid != uid).cloned().collect();
    match set_references(objects, stranger, &kept).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

async fn set_references<K: Kind>(
    objects: &Objects<K>,
    object: &K,
    references: &[OwnerReference],
) -> Result<K, ControllerError> {
    // The list is replaced as a whole, so it must be the one that was read.
    let metadata =
        json!({"uid": object.uid(), "resourceVersion": object.resource_version(), "ownerReferences": references});
    objects.patch(&Key::of(object), &json!({"metadata": metadata})).await
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn controlled_by(uid: &str) -> ObjectMeta {
        let reference = OwnerReference { uid: uid.into(), controller: Some(true), ..OwnerReference::default() };
        ObjectMeta { owner_references: Some(vec![reference]), ..ObjectMeta::default() }
    }

    #[test]
    fn claims() {
        let owner = ObjectMeta { uid: Some("me".into()), ..ObjectMeta::default() };
        let leaving = ObjectMeta { deletion_timestamp: Some(Time(Timestamp::UNIX_EPOCH)), ..owner.clone() };
        let stray = ObjectMeta::default();
        let dying = ObjectMeta { deletion_timestamp: Some(Time(Timestamp::UNIX_EPOCH)), ..ObjectMeta::default() };
        let table = [
            (&owner, true, controlled_by("me"), Claim::Owned),
            (&owner, false, controlled_by("me"), Claim::Release),
            (&owner, true, controlled_by("other"), Claim::Foreign),
            (&owner, true, stray.clone(), Claim::Adopt),
            (&owner, false, stray.clone(), Claim::Foreign),
            (&owner, true, dying, Claim::Foreign),
            (&leaving, true, controlled_by("me"), Claim::Owned),
            (&leaving, false, controlled_by("me"), Claim::Foreign),
            (&leaving, true, stray, Claim::Foreign),
        ];
        for (owner, selected, candidate, expected) in table {
            assert_eq!(claim(owner, selected, &candidate), expected, "{owner:?} {selected} {candidate:?}");
        }
    }
}
