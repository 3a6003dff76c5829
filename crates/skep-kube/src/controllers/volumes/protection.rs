//! The finalizers that keep claims and volumes from being pulled away from under a pod. The API server sets them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};

use super::super::pods;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

/// The names of the claims that a pod uses.
pub(super) fn claims_of(pod: &Pod) -> Vec<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    let claims = volumes.iter().filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
        (Some(claim), _) => Some(claim.claim_name.clone()),
        (None, Some(_)) => Some(format!("{name}-{}", volume.name)),
        (None, None) => None,
    });
    claims.collect()
}

/// The finalizers of a claim that is being deleted, without the protection if nobody uses it any more.
pub(super) fn finalizers_of_claim(claim: &PersistentVolumeClaim, pods: &[Arc<Pod>]) -> Option<Vec<String>> {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let in_use = pods.iter().any(|pod| !pods::is_finished(pod) && claims_of(pod).iter().any(|used| used == name));
    if in_use { None } else { without(claim.metadata.finalizers.as_deref(), CLAIM) }
}

/// As [`finalizers_of_claim`], for a volume: its claim must be gone.
pub(super) fn finalizers_of_volume(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
) -> Option<Vec<String>> {
    if claim.is_some_and(|claim| super::plan::is_claimed_by(volume, claim)) {
        return None;
    }
    without(volume.metadata.finalizers.as_deref(), VOLUME)
}

fn without(finalizers: Option<&[String]>, unwanted: &str) -> Option<Vec<String>> {
    let finalizers = finalizers.unwrap_or_default();
    let kept: Vec<String> = finalizers.iter().filter(|finalizer| *finalizer != unwanted).cloned().collect();
    (kept.len() != finalizers.len()).then_some(kept)
}
