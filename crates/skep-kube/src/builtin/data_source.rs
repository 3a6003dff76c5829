//! What a claim is to be filled from: `dataSource`, the old field, says the same as `dataSourceRef`.

use serde_json::Value;

const OLD: &str = "dataSource";
const NEW: &str = "dataSourceRef";

/// Drops sources that nobody could fill a volume from, and writes what is left to both fields.
pub(super) fn settle_data_source(claim: &mut Value) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if spec.get(OLD).is_some_and(|source| !is_known(source)) {
        spec.remove(OLD);
    }
    // A feature that is off: claims of other namespaces.
    if spec.get(NEW).is_some_and(|source| !text(source, "namespace").is_empty()) {
        spec.remove(NEW);
    }
    let given = |name: &str| spec.get(name).filter(|source| !source.is_null()).cloned();
    match (given(OLD), given(NEW)) {
        (Some(source), None) => _ = spec.insert(NEW.to_owned(), source),
        (None, Some(source)) => _ = spec.insert(OLD.to_owned(), source),
        _ => {}
    }
}

/// The two that the old field could say from the beginning.
fn is_known(source: &Value) -> bool {
    matches!(
        (text(source, "apiGroup"), text(source, "kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

fn text<'a>(source: &'a Value, name: &str) -> &'a str {
    source[name].as_str().unwrap_or_default()
}
