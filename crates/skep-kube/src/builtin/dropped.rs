//! What v1.36 takes and does not keep: fields of features that are off unless somebody turns them on.

use serde_json::{Map, Value};

use super::Builtin;

/// Drops what the server does not keep. An object that has some of it from earlier times keeps it.
pub(super) fn drop_unkept(kind: &Builtin, object: &mut Value, old: Option<&Value>) {
    if !old.is_some_and(|old| take_out(kind, &mut old.clone())) {
        take_out(kind, object);
    }
}

/// Whether there was anything.
fn take_out(kind: &Builtin, object: &mut Value) -> bool {
    match kind.kind {
        "Pod" => pod(object.get_mut("spec")),
        "Deployment" | "ReplicaSet" => pod(object.pointer_mut("/spec/template/spec")),
        "StatefulSet" => {
            remove(object.pointer_mut("/spec/updateStrategy/rollingUpdate"), &["maxUnavailable"])
                | pod(object.pointer_mut("/spec/template/spec"))
        }
        "Lease" => remove(object.get_mut("spec"), &["strategy", "preferredHolder"]),
        "Node" => remove(object.get_mut("spec"), &["configSource"]) | remove(object.get_mut("status"), &["config"]),
        _ => false,
    }
}

fn pod(spec: Option<&mut Value>) -> bool {
    let Some(spec) = spec else { return false };
    let mut found = remove(Some(&mut *spec), &["schedulingGroup"]);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items(spec.get_mut(list)) {
            if remove(container.get_mut("lifecycle"), &["stopSignal"]) {
                found = true;
                if container["lifecycle"].as_object().is_some_and(Map::is_empty) {
                    remove(Some(container), &["lifecycle"]);
                }
            }
        }
    }
    for volume in items(spec.get_mut("volumes")) {
        for source in items(volume.pointer_mut("/projected/sources")) {
            found |= remove(Some(source), &["clusterTrustBundle", "podCertificate"]);
        }
    }
    found
}

fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

fn remove(object: Option<&mut Value>, names: &[&str]) -> bool {
    let Some(members) = object.and_then(Value::as_object_mut) else { return false };
    let before = members.len();
    members.retain(|name, _| !names.contains(&name.as_str()));
    members.len() < before
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_there_already_stays() {
        let kind = super::super::find("coordination.k8s.io", "v1", "Lease").unwrap();
        let lease = |strategy: &str| json!({ "spec": { "holderIdentity": "bee", "strategy": strategy } });
        let plain = json!({ "spec": { "holderIdentity": "bee" } });
        for (old, kept) in [(None, plain.clone()), (Some(plain), json!({ "spec": { "holderIdentity": "bee" } }))] {
            let mut new = lease("a");
            drop_unkept(kind, &mut new, old.as_ref());
            assert_eq!(new, kept);
        }
        let mut new = lease("b");
        drop_unkept(kind, &mut new, Some(&lease("a")));
        assert_eq!(new, lease("b"));
    }
}
