//! Managed fields of built-in kinds, compared with a real server. The schemas are the ones that the server publishes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "apply/real.rs"]
mod real;

use kube::Client;
use real::send;
use serde_json::{Value, json};
use skep_conformance::control_plane::ControlPlane;
use skep_kube::apply::{Ownable, Target, apply, blank, update};
use skep_kube::schema::Schema;

/// A built-in kind: where its schema and its objects are, and an object of it.
struct Kind {
    document: &'static str,
    definition: &'static str,
    collection: &'static str,
    object: Value,
    /// A change to the object, as a merge patch.
    change: Value,
    /// What the server sets on creation without anybody owning it.
    assigned: &'static [&'static str],
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
            document: "api/v1",
            definition: "io.k8s.api.core.v1.ConfigMap",
            collection: "/api/v1/namespaces/default/configmaps",
            object: json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "a", "labels": { "a": "b" }, "finalizers": ["example.com/a"] },
                "data": { "x": "y", "z": "" } }),
            change: json!({ "data": { "x": null, "n": "1" }, "metadata": { "annotations": { "a": "b" } } }),
            assigned: &[],
        },
        Kind {
            document: "apis/apps/v1",
            definition: "io.k8s.api.apps.v1.Deployment",
            collection: "/apis/apps/v1/namespaces/default/deployments",
            object: json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": {
                "selector": { "matchLabels": { "app": "a" } },
                "template": { "metadata": { "labels": { "app": "a" } }, "spec": pod_spec() } } }),
            change: json!({ "spec": { "replicas": 0, "template": { "spec": { "containers": [{ "name": "other", "image": "x" }] } } } }),
            assigned: &[],
        },
        Kind {
            document: "api/v1",
            definition: "io.k8s.api.core.v1.Service",
            collection: "/api/v1/namespaces/default/services",
            object: json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" }, "spec": {
                "selector": { "app": "a" }, "ports": [{ "port": 80, "name": "http" }, { "port": 443, "name": "tls", "targetPort": "x" }] } }),
            change: json!({ "spec": { "ports": [{ "port": 81 }], "selector": null } }),
            assigned: &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"],
        },
        Kind {
            document: "api/v1",
            definition: "io.k8s.api.core.v1.Pod",
            collection: "/api/v1/namespaces/default/pods",
            object: json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "labels": { "a": "b" } },
                "spec": pod_spec() }),
            change: json!({ "metadata": { "labels": { "c": "d", "a": null } }, "spec": { "activeDeadlineSeconds": 9 } }),
            assigned: &["serviceAccount", "serviceAccountName", "priority", "preemptionPolicy"],
        },
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn built_in_kinds_are_owned_as_on_the_real_server() {
    let Some(control_plane) = ControlPlane::start_or_skip("built_in_kinds_are_owned_as_on_the_real_server").await
    else {
        return;
    };
    let client = control_plane.admin().await.unwrap();
    for kind in kinds() {
        let bench = Bench::new(&client, kind).await;
        bench.create_and_patch().await;
        bench.apply_twice().await;
    }
}

struct Bench<'a> {
    client: &'a Client,
    kind: Kind,
    schema: Schema,
    blank: Value,
}

impl<'a> Bench<'a> {
    async fn new(client: &'a Client, kind: Kind) -> Self {
        let path = format!("/openapi/v3/{}", kind.document);
        let document = send(client, "GET", &path, "application/json", &Value::Null).await.document;
        let schemas = &document["components"]["schemas"];
        let schema = Schema::read(&resolved(&schemas[kind.definition], schemas));
        let blank = blank(&schema);
        Self { client, kind, schema, blank }
    }

    fn with_target<T>(&self, act: impl FnOnce(&Target<'_>) -> T) -> T {
        act(&Target {
            schema: &self.schema,
            api_version: self.kind.object["apiVersion"].as_str().unwrap(),
            versions: &[],
            subresource: "",
            ownable: &Ownable::all_but(&["status"]),
            blank: &self.blank,
        })
    }

    /// An object of this name as it was right before its managed fields were written.
    fn before_assignment(&self, stored: &Value) -> Value {
        let mut object = stored.clone();
        for name in self.kind.assigned {
            object["spec"].as_object_mut().unwrap().remove(*name);
        }
        object
    }

    async fn create_and_patch(&self) {
        let collection = self.kind.collection;
        let stored =
            send(self.client, "POST", &format!("{collection}?fieldManager=one"), "application/json", &self.kind.object)
                .await;
        assert!(stored.is_success(), "{stored:?}");
        let mut ours = self.before_assignment(&stored.document);
        ours["metadata"].as_object_mut().unwrap().remove("managedFields");
        self.with_target(|target| update(target, None, &mut ours, "one", "2000-01-01T00:00:00Z"));
        assert_same(&ours, &stored.document);

        // The object may have been written by controllers in between; then it is tried again.
        loop {
            let path = format!("{collection}/a");
            let live = send(self.client, "GET", &path, "application/json", &Value::Null).await.document;
            let mut change = self.kind.change.clone();
            change["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            let path = format!("{path}?fieldManager=two");
            let patched = send(self.client, "PATCH", &path, "application/merge-patch+json", &change).await;
            if patched.code == 409 {
                continue;
            }
            assert!(patched.is_success(), "{patched:?}");
            let mut ours = patched.document.clone();
            ours["metadata"].as_object_mut().unwrap().remove("managedFields");
            self.with_target(|target| update(target, Some(&live), &mut ours, "two", "2000-01-01T00:00:00Z"));
            assert_same(&ours, &patched.document);
            return;
        }
    }

    async fn apply_twice(&self) {
        let mut configuration = self.kind.object.clone();
        configuration["metadata"]["name"] = "b".into();
        let path = format!("{}/b?fieldManager=one", self.kind.collection);
        let created = send(self.client, "PATCH", &path, "application/apply-patch+yaml", &configuration).await;
        assert!(created.is_success(), "{created:?}");
        let now = "2000-01-01T00:00:00Z";
        let ours = self.with_target(|target| apply(target, None, &configuration, "one", false, now)).unwrap();
        assert_same(&ours, &created.document);

        // A second owner of what is the same, which takes by force what defaults have made different.
        configuration["metadata"]["labels"] = json!({ "e": "f" });
        for force in [false, true] {
            let path = format!("{}/b?fieldManager=two&force={force}", self.kind.collection);
            let live = send(self.client, "GET", &path, "application/json", &Value::Null).await.document;
            let applied = send(self.client, "PATCH", &path, "application/apply-patch+yaml", &configuration).await;
            let ours = self.with_target(|target| apply(target, Some(&live), &configuration, "two", force, now));
            match (ours, applied.code) {
                (Ok(ours), 200) => assert_same(&ours, &applied.document),
                (Err(error), 409) => assert_eq!(applied.document["message"], error.to_string()),
                (ours, _) => panic!("{applied:?}\nours: {ours:?}"),
            }
        }
    }
}

/// Compares managed fields, except for times and what controllers have written to the status.
fn assert_same(ours: &Value, theirs: &Value) {
    let entries = |object: &Value| {
        let mut entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.retain(|entry| entry["subresource"].is_null());
        for entry in &mut entries {
            entry.as_object_mut().unwrap().remove("time");
        }
        entries.sort_by_key(ToString::to_string);
        Value::Array(entries)
    };
    let (ours_entries, theirs_entries) = (entries(ours), entries(theirs));
    assert!(
        ours_entries == theirs_entries,
        "{}\nours: {ours_entries:#}\ntheirs: {theirs_entries:#}\nobject: {theirs:#}",
        theirs["kind"]
    );
}

/// A definition without references. What stands beside a reference has precedence.
fn resolved(schema: &Value, definitions: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let reference = members.get("$ref").or_else(|| match members.get("allOf")?.as_array()?.as_slice() {
                [only] => only.get("$ref"),
                _ => None,
            });
            let mut result = match reference.and_then(Value::as_str) {
                Some(reference) => resolved(&definitions[reference.rsplit('/').next().unwrap()], definitions),
                None => json!({}),
            };
            for (name, value) in members {
                if name != "$ref" && !(name == "allOf" && reference.is_some()) {
                    result[name] = resolved(value, definitions);
                }
            }
            result
        }
        Value::Array(items) => items.iter().map(|item| resolved(item, definitions)).collect(),
        other => other.clone(),
    }
}
