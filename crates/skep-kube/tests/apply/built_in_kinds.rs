//! Managed fields of built-in kinds, compared with a real server.

use serde_json::{Value, json};

use super::pair::{Answer, Both, Pair};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A built-in kind: where its objects are, one of them, and a change to it as a merge patch.
struct Kind {
    collection: &'static str,
    object: Value,
    change: Value,
}

fn pod_spec() -> Value {
    json!({
        "containers": [{
            "name": "main", "image": "example",
            "env": [{ "name": "A", "value": "b" }, { "name": "C", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
            "ports": [{ "containerPort": 80 }, { "containerPort": 443, "name": "tls" }],
            "resources": { "limits": { "cpu": "1" } },
            "readinessProbe": { "httpGet": { "path": "/", "port": 80 } },
            "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
        }],
        "volumes": [{ "name": "data", "emptyDir": {} }],
        "tolerations": [{ "operator": "Exists" }],
        "nodeSelector": { "a": "b" },
        "automountServiceAccountToken": false,
    })
}

fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            collection: "/api/v1/namespaces/default/configmaps",
            object: json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "a", "labels": { "a": "b" }, "finalizers": ["example.com/a"] },
                "data": { "x": "y", "z": "" } }),
            change: json!({ "data": { "x": null, "n": "1" }, "metadata": { "annotations": { "a": "b" } } }),
        },
        Kind {
            collection: "/apis/apps/v1/namespaces/default/deployments",
            object: json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": {
                "selector": { "matchLabels": { "app": "a" } },
                "template": { "metadata": { "labels": { "app": "a" } }, "spec": pod_spec() } } }),
            change: json!({ "spec": { "replicas": 0, "template": { "spec": { "containers": [{ "name": "other", "image": "x" }] } } } }),
        },
        Kind {
            collection: "/api/v1/namespaces/default/services",
            object: json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" }, "spec": {
                "selector": { "app": "a" }, "ports": [{ "port": 80, "name": "http" }, { "port": 443, "name": "tls", "targetPort": "x" }] } }),
            change: json!({ "spec": { "ports": [{ "port": 81 }], "selector": null } }),
        },
        Kind {
            collection: "/api/v1/namespaces/default/pods",
            object: json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "labels": { "a": "b" } },
                "spec": pod_spec() }),
            change: json!({ "metadata": { "labels": { "c": "d", "a": null } }, "spec": { "activeDeadlineSeconds": 9 } }),
        },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_kinds_are_owned_as_on_the_real_server() {
    let Some(pair) = Pair::start_or_skip("built_in_kinds_are_owned_as_on_the_real_server").await else { return };
    for kind in kinds() {
        create_and_patch(&pair, &kind).await;
        apply_twice(&pair, &kind).await;
    }
}

async fn create_and_patch(pair: &Pair, kind: &Kind) {
    let path = format!("{}?fieldManager=one", kind.collection);
    assert_same(&pair.write("POST", path, JSON, &kind.object).await, 201);
    let path = format!("{}/a?fieldManager=two", kind.collection);
    assert_same(&pair.write("PATCH", path, MERGE_PATCH, &kind.change).await, 200);
}

async fn apply_twice(pair: &Pair, kind: &Kind) {
    let mut configuration = kind.object.clone();
    configuration["metadata"]["name"] = "b".into();
    let path = format!("{}/b?fieldManager=one", kind.collection);
    assert_same(&pair.write("PATCH", path, APPLY, &configuration).await, 201);
    // A second owner of what is the same, which takes by force what defaults have made different.
    configuration["metadata"]["labels"] = json!({ "e": "f" });
    for force in [false, true] {
        let path = format!("{}/b?fieldManager=two&force={force}", kind.collection);
        let applied = pair.write("PATCH", path, APPLY, &configuration).await;
        let code = applied.theirs.code;
        assert!(code == 200 || (code == 409 && !force), "{applied:?}");
        assert_same(&applied, code);
    }
}

/// Compares what the request itself has written: managed fields without times, and without what controllers have
/// written in between. A refusal is compared as a whole.
fn assert_same(answers: &Both<Answer>, code: u16) {
    let compared = answers.as_ref().map(|answer| {
        assert_eq!(answer.code, code, "{answers:#?}");
        if !answer.is_success() {
            return (answer.warnings.clone(), answer.document.clone());
        }
        let mut entries = answer.document["metadata"]["managedFields"].as_array().unwrap().clone();
        entries.retain(|entry| ["one", "two"].iter().any(|manager| entry["manager"] == *manager));
        for entry in &mut entries {
            entry.as_object_mut().unwrap().remove("time");
            entry.sort_all_objects();
        }
        entries.sort_by_key(ToString::to_string);
        (answer.warnings.clone(), Value::Array(entries))
    });
    assert!(compared.ours == compared.theirs, "{compared:#?}\n{answers:#?}");
}
