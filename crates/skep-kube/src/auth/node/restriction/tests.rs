use serde_json::json;

use super::*;

fn hive() -> User {
    User::new("system:node:hive", &["system:nodes"])
}

/// What a node hears when it makes `old` into `new`.
fn said(resource: &str, old: Option<&Value>, new: &Value) -> Option<String> {
    let (group, resource) = resource.split_once(':').unwrap_or(("", resource));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    refusal(&hive(), &Write { group, resource, subresource, old, new })
}

fn labelled(label: &str) -> Value {
    json!({ "metadata": { "name": "hive", "labels": { label: "x" } } })
}

#[test]
fn others_are_not_restricted() {
    let write = Write { group: "", resource: "nodes", subresource: "", old: None, new: &json!({}) };
    assert_eq!(refusal(&User::new("system:node:hive", &["devs"]), &write), None);
    let nameless = refusal(&User::new("system:node:", &["system:nodes"]), &write).unwrap();
    assert_eq!(nameless, "could not determine node from user \"system:node:\"");
}

#[test]
fn a_node_is_itself_only() {
    let nest = json!({ "metadata": { "name": "nest" } });
    assert_eq!(said("nodes", None, &nest).unwrap(), "node \"hive\" is not allowed to modify node \"nest\"");
    assert_eq!(said("nodes", None, &json!({ "metadata": { "name": "hive" } })), None);
    let lease = |namespace: &str, name: &str| json!({ "metadata": { "namespace": namespace, "name": name } });
    assert_eq!(said("coordination.k8s.io:leases", None, &lease("kube-node-lease", "hive")), None);
    assert!(said("coordination.k8s.io:leases", None, &lease("kube-node-lease", "nest")).is_some());
    assert!(said("coordination.k8s.io:leases", None, &lease("default", "hive")).is_some());
}

#[test]
fn a_node_does_not_say_what_runs_on_it() {
    let bare = json!({ "metadata": { "name": "hive" }, "spec": { "taints": [] } });
    for (label, is_free) in [
        ("kubernetes.io/hostname", true),
        ("topology.kubernetes.io/zone", true),
        ("node.kubernetes.io/speed", true),
        ("x.kubelet.kubernetes.io/speed", true),
        ("example.com/speed", true),
        ("speed", true),
        ("notkubernetes.io/speed", true),
        ("node-role.kubernetes.io/control-plane", false),
        ("node-restriction.kubernetes.io/pci", false),
        ("x.node-restriction.kubernetes.io/pci", false),
        ("k8s.io/speed", false),
    ] {
        assert_eq!(said("nodes", None, &labelled(label)).is_none(), is_free, "{label}");
        assert_eq!(said("nodes", Some(&bare), &labelled(label)).is_none(), is_free, "{label}");
        assert_eq!(said("nodes", Some(&labelled(label)), &bare).is_none(), is_free, "{label}");
    }
    let tainted = json!({ "metadata": { "name": "hive" }, "spec": { "taints": [{ "key": "a" }] } });
    assert_eq!(said("nodes", None, &tainted), None);
    for (old, new) in [(&bare, &tainted), (&tainted, &bare)] {
        assert_eq!(said("nodes/status", Some(old), new).unwrap(), "node \"hive\" is not allowed to modify taints");
    }
    let owned = json!({ "metadata": { "name": "hive", "ownerReferences": [{ "uid": "x" }] } });
    assert_eq!(said("nodes", Some(&bare), &owned).unwrap(), "node \"hive\" is not allowed to modify ownerReferences");
}

#[test]
fn a_node_reports_on_pods_and_claims_and_changes_nothing_else() {
    let pod = json!({ "metadata": { "labels": { "a": "b" } }, "status": {} });
    let running = json!({ "metadata": { "labels": { "a": "b" } }, "status": { "phase": "Running" } });
    let relabelled = json!({ "metadata": { "labels": { "a": "c" } }, "status": {} });
    assert_eq!(said("pods/status", Some(&pod), &running), None);
    assert!(said("pods/status", Some(&pod), &relabelled).unwrap().contains("labels"));
    assert!(said("pods", None, &pod).is_some());
    assert!(said("pods", Some(&pod), &running).is_some());

    let claim = json!({ "metadata": { "name": "c" }, "status": { "phase": "Bound" } });
    let grown = json!({
        "metadata": { "name": "c", "managedFields": [{}] },
        "status": { "phase": "Bound", "capacity": { "storage": "2Gi" }, "conditions": [{}] },
    });
    let lost = json!({ "metadata": { "name": "c" }, "status": { "phase": "Lost" } });
    assert_eq!(said("persistentvolumeclaims/status", Some(&claim), &grown), None);
    assert!(said("persistentvolumeclaims/status", Some(&claim), &lost).is_some());
    assert!(said("persistentvolumeclaims", Some(&claim), &grown).is_some());
}

#[test]
fn a_node_gets_the_tokens_that_its_pods_want() {
    let pod = |node: &str| {
        json!({
            "metadata": { "name": "p", "uid": "u" },
            "spec": { "nodeName": node, "volumes": [{ "projected": { "sources": [
                { "serviceAccountToken": {} }, { "serviceAccountToken": { "audience": "vault" } },
            ] } }] },
        })
    };
    let ask = |kind: &str, uid: &str, audiences: &[&str]| {
        let reference = json!({ "apiVersion": "v1", "kind": kind, "name": "p", "uid": uid });
        json!({ "spec": { "audiences": audiences, "boundObjectRef": reference } })
    };
    let said =
        |request: &Value, pod: Option<&Value>| token_refusal(&hive(), request, pod, |audience| audience == "free");
    let own = pod("hive");
    for audiences in [&[] as &[&str], &["vault"], &["free"]] {
        assert_eq!(said(&ask("Pod", "u", audiences), Some(&own)), None, "{audiences:?}");
    }
    for (request, pod, why) in [
        (json!({}), Some(&own), "not bound to a pod"),
        (ask("Secret", "u", &[]), Some(&own), "not bound to a pod"),
        (ask("Pod", "u", &[]), None, "not bound to a pod"),
        (ask("Pod", "", &[]), Some(&own), "without a uid"),
        (ask("Pod", "v", &[]), Some(&own), "does not match the UID"),
        (ask("Pod", "u", &[]), Some(&pod("nest")), "a different node"),
        (ask("Pod", "u", &["a", "b"]), Some(&own), "0 or 1 audiences"),
        (ask("Pod", "u", &["bank"]), Some(&own), "audience \"bank\" not found in pod spec volume"),
    ] {
        let refusal = said(&request, pod).unwrap();
        assert!(refusal.contains(why), "{refusal}");
    }
    assert_eq!(token_refusal(&User::new("bob", &[]), &json!({}), None, |_| false), None);
}
