//! What a claim or a volume needs next.
//!
//! Binding takes several writes (claim annotated, volume made, volume taken, claim bound, both statuses). Each pass
//! does one of them, so that stopping anywhere leaves a state that the next pass understands.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus,
    PersistentVolumeSpec, PersistentVolumeStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;

use super::Storage;
use crate::controllers::quantity;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const PROVISIONER: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];

#[derive(Debug)]
pub(super) enum ClaimStep {
    Nothing,
    /// The claim tells who provisions for it.
    Annotate(Box<PersistentVolumeClaim>),
    Provision(Box<PersistentVolume>),
    /// The volume names its claim.
    Take(Box<PersistentVolume>),
    /// The claim names its volume.
    Bind(Box<PersistentVolumeClaim>),
    SetStatus(Box<PersistentVolumeClaimStatus>),
    Wait {
        reason: &'static str,
        message: String,
    },
}

#[derive(Debug, PartialEq)]
pub(super) enum VolumeStep {
    Nothing,
    SetStatus(Box<PersistentVolumeStatus>),
    /// The volume goes, with its folder if it is one of ours.
    Reclaim(Option<PathBuf>),
}

pub(super) fn is_pending(claim: &PersistentVolumeClaim) -> bool {
    claim.spec.as_ref().is_none_or(|spec| spec.volume_name.is_none())
}

/// Whether the volume names this claim. A reference without UID is a reservation, which counts, too.
pub(super) fn is_claimed_by(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { return false };
    let named = reference.namespace == claim.metadata.namespace && reference.name == claim.metadata.name;
    named && reference.uid.as_ref().is_none_or(|uid| uid.is_empty() || Some(uid) == claim.metadata.uid.as_ref())
}

pub(super) fn claim_step(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
    storage: &Storage,
) -> ClaimStep {
    let spec = claim.spec.clone().unwrap_or_default();
    let named = spec.volume_name.as_ref();
    let volume = match named {
        Some(name) => volumes.iter().find(|volume| volume.metadata.name.as_ref() == Some(name)),
        None => find(claim, volumes, storage),
    };
    let Some(volume) = volume else {
        return match (named, status_of(claim, "Lost", None)) {
            (Some(_), Some(status)) if annotation(claim, BIND_COMPLETED).is_some() => {
                ClaimStep::SetStatus(Box::new(status))
            }
            (Some(_), _) => ClaimStep::Nothing,
            (None, _) => provision(claim, storage),
        };
    };
    if !is_taken_by(volume, claim) {
        return if is_free_for(volume, claim) {
            ClaimStep::Take(Box::new(taken(volume, claim)))
        } else {
            ClaimStep::Nothing
        };
    }
    let bound = bound(claim, volume);
    if bound != *claim {
        return ClaimStep::Bind(Box::new(bound));
    }
    match status_of(claim, "Bound", Some(volume)) {
        Some(status) => ClaimStep::SetStatus(Box::new(status)),
        None => ClaimStep::Nothing,
    }
}

/// The class of a claim; without one it is the built-in class.
fn class<'a>(claim: &'a PersistentVolumeClaim, storage: &'a Storage) -> &'a str {
    claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()).unwrap_or(&storage.class)
}

/// The volume that names this claim already, or the smallest free one that fits.
fn find<'a>(
    claim: &PersistentVolumeClaim,
    volumes: &'a [Arc<PersistentVolume>],
    storage: &Storage,
) -> Option<&'a Arc<PersistentVolume>> {
    let reserved = volumes.iter().find(|volume| is_claimed_by(volume, claim));
    reserved.or_else(|| {
        let fitting = volumes.iter().filter(|volume| is_free(volume) && fits(volume, claim, class(claim, storage)));
        fitting.min_by_key(|volume| (quantity::bytes(capacity(volume).as_ref()), volume.metadata.name.clone()))
    })
}

fn is_free(volume: &PersistentVolume) -> bool {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    let unclaimed = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none());
    unclaimed && volume.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Released" | "Failed"))
}

fn is_free_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    is_free(volume) || is_claimed_by(volume, claim)
}

fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim, class: &str) -> bool {
    let (Some(offered), Some(wanted)) = (&volume.spec, &claim.spec) else { return false };
    let modes = wanted.access_modes.as_deref().unwrap_or_default();
    let offers = offered.access_modes.as_deref().unwrap_or_default();
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
    let labels = volume.metadata.labels.clone().unwrap_or_default();
    let selected = wanted.selector.as_ref().is_none_or(|selector| {
        let selector = crate::controllers::ownership::selector_of(selector);
        selector.is_ok_and(|selector| kube::core::SelectorExt::matches(&selector, &labels))
    });
    selected
        && offered.storage_class_name.as_deref().unwrap_or_default() == class
        && mode(&offered.volume_mode) == mode(&wanted.volume_mode)
        && modes.iter().all(|mode| offers.contains(mode))
        && quantity::bytes(capacity(volume).as_ref()) >= quantity::bytes(request(claim).as_ref())
}

fn capacity(volume: &PersistentVolume) -> Option<Quantity> {
    volume.spec.as_ref()?.capacity.as_ref()?.get("storage").cloned()
}

fn request(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage").cloned()
}

fn annotation<'a>(claim: &'a PersistentVolumeClaim, name: &str) -> Option<&'a str> {
    claim.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

fn provision(claim: &PersistentVolumeClaim, storage: &Storage) -> ClaimStep {
    let class = class(claim, storage);
    if class.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set".to_owned();
        return ClaimStep::Wait { reason: "FailedBinding", message };
    }
    if class != storage.class || claim.metadata.uid.is_none() {
        // Another provisioner may know this class.
        return ClaimStep::Nothing;
    }
    if PROVISIONER.iter().any(|name| annotation(claim, name) != Some(storage.provisioner.as_str())) {
        let mut updated = claim.clone();
        let annotations = updated.metadata.annotations.get_or_insert_default();
        for name in PROVISIONER {
            annotations.insert(name.to_owned(), storage.provisioner.clone());
        }
        return ClaimStep::Annotate(Box::new(updated));
    }
    ClaimStep::Provision(Box::new(folder_volume(claim, storage)))
}

/// A new volume for a claim: a folder of its own.
fn folder_volume(claim: &PersistentVolumeClaim, storage: &Storage) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let name = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
    let folder = storage.folder.join(&name);
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some(BTreeMap::from([(PROVISIONED_BY.to_owned(), storage.provisioner.clone())])),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: request(claim).map(|size| BTreeMap::from([("storage".to_owned(), size)])),
            claim_ref: Some(reference(claim)),
            persistent_volume_reclaim_policy: Some("Delete".to_owned()),
            storage_class_name: Some(storage.class.clone()),
            volume_mode: spec.volume_mode,
            host_path: Some(HostPathVolumeSource {
                path: folder.display().to_string(),
                type_: Some("DirectoryOrCreate".to_owned()),
            }),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The volume names this claim with its UID.
fn is_taken_by(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let uid = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()?.uid.as_ref());
    is_claimed_by(volume, claim) && uid.is_some() && uid == claim.metadata.uid.as_ref()
}

fn taken(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> PersistentVolume {
    let mut taken = volume.clone();
    let spec = taken.spec.get_or_insert_default();
    if spec.claim_ref.is_none() {
        let annotations = taken.metadata.annotations.get_or_insert_default();
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    spec.claim_ref = Some(reference(claim));
    taken
}

fn bound(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> PersistentVolumeClaim {
    let mut bound = claim.clone();
    let spec = bound.spec.get_or_insert_default();
    let annotations = bound.metadata.annotations.get_or_insert_default();
    if spec.volume_name.is_none() {
        spec.volume_name.clone_from(&volume.metadata.name);
        annotations.insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
    }
    // The class is told once; it cannot be changed later.
    if spec.storage_class_name.is_none() {
        spec.storage_class_name = volume.spec.as_ref().and_then(|spec| spec.storage_class_name.clone());
    }
    annotations.insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
    bound
}

/// The status that the claim should have, if it has another one.
fn status_of(
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&Arc<PersistentVolume>>,
) -> Option<PersistentVolumeClaimStatus> {
    let before = claim.status.clone().unwrap_or_default();
    let spec = volume.and_then(|volume| volume.spec.clone()).unwrap_or_default();
    let wanted = PersistentVolumeClaimStatus {
        phase: Some(phase.to_owned()),
        access_modes: spec.access_modes,
        capacity: spec.capacity,
        ..before.clone()
    };
    (wanted != before).then_some(wanted)
}

pub(super) fn volume_step(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
    storage: &Storage,
    now: Timestamp,
) -> VolumeStep {
    let spec = volume.spec.clone().unwrap_or_default();
    let before = volume.status.clone().unwrap_or_default();
    let reserved = spec.claim_ref.as_ref().is_some_and(|reference| reference.uid.is_none());
    let phase = match (&spec.claim_ref, claim) {
        (None, _) => "Available",
        (Some(_), Some(claim)) if is_claimed_by(volume, claim) => {
            let names_it = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
            if names_it == volume.metadata.name.as_ref() { "Bound" } else { "Available" }
        }
        (Some(_), _) if reserved => "Available",
        // A volume made for a claim that has not been bound to it yet is as good as released when the claim is gone.
        (Some(_), _) => "Released",
    };
    // While a new volume waits to be bound the server calls it Pending; leave that until it is bound.
    if phase == "Available" && spec.claim_ref.is_some() && before.phase.is_some() && !reserved {
        return VolumeStep::Nothing;
    }
    if before.phase.as_deref() != Some(phase) {
        return VolumeStep::SetStatus(Box::new(PersistentVolumeStatus {
            phase: Some(phase.to_owned()),
            last_phase_transition_time: Some(Time(now)),
            ..PersistentVolumeStatus::default()
        }));
    }
    if phase == "Released" && spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete") {
        return reclaim(volume, storage);
    }
    VolumeStep::Nothing
}

/// Only volumes that we made are deleted, and only folders directly in our base folder are removed.
fn reclaim(volume: &PersistentVolume, storage: &Storage) -> VolumeStep {
    let made_by = volume.metadata.annotations.as_ref().and_then(|annotations| annotations.get(PROVISIONED_BY));
    if made_by != Some(&storage.provisioner) {
        return VolumeStep::Nothing;
    }
    let path = volume.spec.as_ref().and_then(|spec| Some(PathBuf::from(&spec.host_path.as_ref()?.path)));
    VolumeStep::Reclaim(path.filter(|path| is_inside(path, &storage.folder)))
}

fn is_inside(path: &Path, folder: &Path) -> bool {
    let plain = path.components().all(|component| !matches!(component, Component::ParentDir));
    plain && path.parent() == Some(folder) && path.file_name().is_some()
}

#[cfg(test)]
mod tests;
