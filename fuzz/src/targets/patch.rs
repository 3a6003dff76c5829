//! Patches. Inputs: the patch, the object.

use serde_json::Value;
use skep_kube::builtin;
use skep_kube::patch::{PatchKind, apply};

use crate::parts::split;

/// The patch as bytes, because its own errors are part of the answer, and the object.
fn patch_and_object(input: &[u8]) -> Option<(&[u8], Value)> {
    let parts = split(input)?;
    let object = skep_kube::decode::decode(parts.get(1)?.as_bytes()).ok()?.value;
    Some((parts.first()?.as_bytes(), object))
}

pub(super) fn json(input: &[u8]) {
    if let Some((patch, object)) = patch_and_object(input) {
        let _ = apply(PatchKind::Json, patch, &object, None);
    }
}

pub(super) fn merge(input: &[u8]) {
    let Some((patch, object)) = patch_and_object(input) else { return };
    if let Ok(merged) = apply(PatchKind::Merge, patch, &object, None) {
        let again = apply(PatchKind::Merge, patch, &merged.object, None);
        assert_eq!(again.ok().map(|again| again.object), Some(merged.object), "a merge patch does the same twice");
    }
}

/// On every kind that has a schema with strategies of its own.
pub(super) fn strategic(input: &[u8]) {
    let Some((patch, object)) = patch_and_object(input) else { return };
    for (group, version, kind) in [("", "v1", "Pod"), ("", "v1", "Service"), ("apps", "v1", "Deployment")] {
        let schema = builtin::schema(group, version, kind);
        let _ = apply(PatchKind::Strategic, patch, &object, schema.as_deref());
    }
}
