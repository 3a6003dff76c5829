//! The merge, by itself and beside that of an API server.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use skep_kube::builtin;
use skep_kube::patch::{self, PatchKind};
use skep_kube::schema::Schema;

use crate::proxy::pod::strategic::{MERGE_KEYS, merge};

fn base() -> Value {
    json!({
        "metadata": {"labels": {"a": "1", "b": "2"}},
        "spec": {
            "serviceAccountName": "runner",
            "imagePullSecrets": [{"name": "one"}],
            "securityContext": {"runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "config", "configMap": {"name": "c"}}, {"name": "data", "hostPath": {"path": "/d"}}],
            "containers": [{
                "name": "toolhive", "image": "i", "args": ["run", "x"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                "volumeMounts": [{"name": "config", "mountPath": "/c"}, {"name": "data", "mountPath": "/d"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}})
}

/// A container of the patch.
fn toolhive(mut members: Value) -> Value {
    members["name"] = json!("toolhive");
    json!({"spec": {"containers": [members]}})
}

fn patches() -> Vec<Value> {
    vec![
        json!({}),
        json!({"metadata": {"labels": {"a": "3", "b": null, "c": "4"}, "annotations": {"n": "o"}}}),
        json!({"metadata": {"labels": {"$patch": "replace", "z": "1"}}}),
        json!({"metadata": {"labels": {"$patch": "delete"}}}),
        json!({"spec": {"runtimeClassName": "r", "tolerations": [{"key": "k", "operator": "Exists"}], "nodeSelector": {"d": "s"}}}),
        json!({"spec": {"securityContext": {"runAsUser": null, "fsGroup": 5}}}),
        json!({"spec": {"securityContext": {"$retainKeys": ["runAsUser"], "runAsUser": 5}}}),
        json!({"spec": {"volumes": [{"name": "more", "emptyDir": {}}, {"name": "data", "$patch": "delete"}]}}),
        json!({"spec": {"volumes": [{"name": "data", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}}),
        json!({"spec": {"volumes": [{"$patch": "replace"}, {"name": "only", "emptyDir": {}}]}}),
        json!({"spec": {"imagePullSecrets": [{"name": "two"}, {"name": "one"}]}}),
        json!({"spec": {"containers": [{"name": "sidecar", "image": "s", "env": [{"name": "X", "value": null}]}]}}),
        json!({"spec": {"initContainers": [{"name": "first", "image": "f"}], "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["h"]}]}}),
        json!({"spec": {"topologySpreadConstraints": [
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
            {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}]}}),
        json!({"spec": {"$setElementOrder/containers": [{"name": "toolhive"}], "containers": [{"name": "toolhive", "image": "j"}]}}),
        toolhive(json!({"args": ["other"]})),
        toolhive(json!({"args": []})),
        toolhive(json!({"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]})),
        toolhive(json!({"env": [{"name": "A", "$patch": "delete"}]})),
        toolhive(json!({"env": null})),
        toolhive(json!({"ports": [{"containerPort": 9090}]})),
        toolhive(json!({"ports": [{"containerPort": 8080, "name": "web"}]})),
        toolhive(
            json!({"volumeMounts": [{"mountPath": "/c", "name": "config", "readOnly": true}, {"mountPath": "/e", "name": "data"}]}),
        ),
        toolhive(json!({"resources": {"limits": {"cpu": null}, "requests": {"memory": "1Mi"}}})),
        toolhive(json!({"resources": {"$patch": "replace", "requests": {"memory": "1Mi"}}})),
        toolhive(json!({"livenessProbe": {"httpGet": {"path": "/x", "port": "http"}}})),
    ]
}

/// Items of keyed lists in the order of their keys: where new ones go is nobody's business.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, member)| {
                let key = MERGE_KEYS.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
                match (sorted(member), key) {
                    (Value::Array(mut items), Some(key)) => {
                        items.sort_by_key(|item| item[key].to_string());
                        (name, Value::Array(items))
                    }
                    (other, _) => (name, other),
                }
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        scalar => scalar,
    }
}

#[test]
fn every_merge_is_the_one_of_the_api_server() {
    let schema = builtin::schema("apps", "v1", "Deployment").unwrap();
    let within = |template: &Value| json!({"spec": {"template": template}});
    for patch in patches() {
        let ours = merge(base(), patch.as_object().unwrap()).unwrap();
        let document = within(&patch).to_string();
        let theirs = patch::apply(PatchKind::Strategic, document.as_bytes(), &within(&base()), Some(&schema)).unwrap();
        assert_eq!(sorted(ours), sorted(theirs.object["spec"]["template"].clone()), "{patch}");
    }
}

#[test]
fn what_is_there_stays_in_front() {
    let patch = json!({"spec": {"containers": [{"name": "a", "image": "a"}, {"name": "toolhive", "image": "j"}]}});
    let merged = merge(base(), patch.as_object().unwrap()).unwrap();
    assert_eq!(merged["spec"]["containers"][0]["image"], "j");
    assert_eq!(merged["spec"]["containers"][1]["name"], "a");
}

#[test]
fn members_that_nobody_knows_are_kept() {
    let patch = json!({"spec": {"fromTheFuture": {"a": [1, {"b": null}]}}});
    let merged = merge(base(), patch.as_object().unwrap()).unwrap();
    assert_eq!(merged["spec"]["fromTheFuture"], json!({"a": [1, {}]}));
}

#[test]
fn patches_that_make_no_sense_are_told() {
    for (patch, expected) in [
        (json!({"spec": {"$patch": "merge"}}), "spec: unknown directive $patch: merge"),
        (json!({"spec": {"$deleteFromPrimitiveList/x": []}}), "unknown directive $deleteFromPrimitiveList/x"),
        (json!({"spec": {"containers": [{"image": "i"}]}}), "spec.containers[0]: name is missing"),
        (json!({"spec": {"volumes": [7]}}), "spec.volumes[0]: name is missing"),
    ] {
        let text = merge(base(), patch.as_object().unwrap()).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

fn merged_lists(schema: &Schema, found: &mut BTreeSet<(String, String)>) {
    for (name, member) in &schema.properties {
        if let Some(key) = member.patch.merge_key.as_ref().filter(|_| member.patch.merge) {
            found.insert((name.clone(), key.clone()));
        }
        merged_lists(member, found);
    }
    if let Some(items) = &schema.items {
        merged_lists(items, found);
    }
}

#[test]
fn the_table_has_every_list_that_is_merged() {
    let deployment = builtin::schema("apps", "v1", "Deployment").unwrap();
    let mut expected = BTreeSet::new();
    merged_lists(&deployment.properties["spec"].properties["template"], &mut expected);
    // Owners are written by whoever makes a pod from the template.
    expected.remove(&("ownerReferences".to_owned(), "uid".to_owned()));
    let table: BTreeSet<_> = MERGE_KEYS.iter().map(|(list, key)| ((*list).to_owned(), (*key).to_owned())).collect();
    assert_eq!(table, expected);
}
