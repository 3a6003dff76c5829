//! Ownership and deletion.

use serde_json::{Value, json};

use super::cluster::{Cluster, eventually, holds, name_of, names};

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {
                "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i:1"}]}}}})
}

async fn of(cluster: &Cluster, kind: &str, namespace: &str, owner: &str) -> Vec<Value> {
    let mut objects = cluster.list(kind, namespace).await;
    objects.retain(|object| name_of(object).starts_with(owner));
    objects
}

async fn gone(cluster: &Cluster, kind: &str, namespace: &str, owner: &str) {
    eventually(&format!("no {kind} of {owner} is left"), || async {
        let rest = of(cluster, kind, namespace, owner).await;
        holds(rest.is_empty(), rest)
    })
    .await;
}

pub(crate) async fn the_three_cascades(cluster: &Cluster) {
    let namespace = "cascades";
    let all = ["background", "foreground", "orphan"];
    cluster.apply(namespace, json!(all.map(deployment))).await;
    for name in all {
        let target = format!("deployment/{name}");
        cluster.kubectl(&["rollout", "status", "-n", namespace, &target, "--timeout=60s"]).await;
    }

    cluster.kubectl(&["delete", "-n", namespace, "deployment/background", "--cascade=background"]).await;
    gone(cluster, "replicaset", namespace, "background").await;
    gone(cluster, "pod", namespace, "background").await;

    // kubectl waits for the owner, which waits for everything below it.
    cluster.kubectl(&["delete", "-n", namespace, "deployment/foreground", "--cascade=foreground"]).await;
    assert!(of(cluster, "replicaset", namespace, "foreground").await.is_empty());
    assert!(of(cluster, "pod", namespace, "foreground").await.is_empty());

    cluster.kubectl(&["delete", "-n", namespace, "deployment/orphan", "--cascade=orphan"]).await;
    let kept = of(cluster, "replicaset", namespace, "orphan").await;
    assert_eq!(kept.len(), 1, "{kept:#?}");
    assert!(kept[0]["metadata"].get("ownerReferences").is_none(), "{:#?}", kept[0]);
    let pods = of(cluster, "pod", namespace, "orphan").await;
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["name"], name_of(&kept[0]));

    // A new owner with the same selector takes the orphans in.
    cluster.apply(namespace, json!([deployment("orphan")])).await;
    eventually("the orphan is adopted", || async {
        let kept = of(cluster, "replicaset", namespace, "orphan").await;
        let adopted = kept.len() == 1 && kept[0]["metadata"]["ownerReferences"][0]["name"] == "orphan";
        holds(adopted, kept)
    })
    .await;
}

pub(crate) async fn dependents_of_custom_resources_go_with_them(cluster: &Cluster) {
    let namespace = "custom";
    let definition = json!([{
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "owners.test.skep.dev"},
        "spec": {"group": "test.skep.dev", "scope": "Namespaced", "names": {
            "kind": "Owner", "plural": "owners", "singular": "owner"}, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }]);
    cluster.apply(namespace, definition).await;
    cluster.kubectl(&["wait", "--for=condition=Established", "crd/owners.test.skep.dev", "--timeout=30s"]).await;
    let owner = json!([{"apiVersion": "test.skep.dev/v1", "kind": "Owner", "metadata": {"name": "one"}}]);
    cluster.apply(namespace, owner).await;
    let uid = cluster.kubectl(&["get", "owner", "one", "-n", namespace, "-o", "jsonpath={.metadata.uid}"]).await;
    let config = |name: &str, uid: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [
            {"apiVersion": "test.skep.dev/v1", "kind": "Owner", "name": "one", "uid": uid}]}})
    };
    // The second one names an owner that never was.
    cluster
        .apply(namespace, json!([config("child", &uid), config("changeling", "00000000-0000-0000-0000-000000000000")]))
        .await;
    eventually("only the true child stays", || async {
        let mut maps = names(&cluster.list("configmap", namespace).await);
        maps.retain(|name| name != "kube-root-ca.crt");
        holds(maps == ["child"], maps)
    })
    .await;
    cluster.kubectl(&["delete", "owner", "one", "-n", namespace]).await;
    gone(cluster, "configmap", namespace, "child").await;
}

/// Who owns himself waits for himself. Nobody else may have to wait with him.
pub(crate) async fn circles_stop_nobody(cluster: &Cluster) {
    let namespace = "circles";
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    cluster.apply(namespace, json!([map("alone"), map("one"), map("other"), map("owner")])).await;
    let owned_by = async |name: &str, owner: &str| {
        let uid = &cluster.get("configmap", namespace, owner).await.unwrap()["metadata"]["uid"];
        let reference =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true});
        cluster.patch("configmap", namespace, name, json!({"metadata": {"ownerReferences": [reference]}})).await;
    };
    owned_by("alone", "alone").await;
    owned_by("one", "other").await;
    owned_by("other", "one").await;
    cluster.kubectl(&["delete", "-n", namespace, "configmap/alone", "--cascade=foreground", "--wait=false"]).await;
    cluster.kubectl(&["delete", "-n", namespace, "configmap/one", "--cascade=foreground"]).await;
    gone(cluster, "configmap", namespace, "other").await;

    cluster.apply(namespace, json!([map("child")])).await;
    owned_by("child", "owner").await;
    cluster.kubectl(&["delete", "-n", namespace, "configmap/owner"]).await;
    gone(cluster, "configmap", namespace, "child").await;
    let alone = cluster.get("configmap", namespace, "alone").await.unwrap();
    assert_eq!(alone["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    cluster.patch("configmap", namespace, "alone", json!({"metadata": {"finalizers": null}})).await;
    gone(cluster, "configmap", namespace, "alone").await;
}

/// Anybody may write the UID of anything into a reference; it must not cost the bearer of the UID anything.
pub(crate) async fn stolen_uids_do_no_harm(cluster: &Cluster) {
    let (namespace, elsewhere) = ("uid-owner", "uid-thief");
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    cluster.apply(namespace, json!([map("owner")])).await;
    let owner = cluster.get("configmap", namespace, "owner").await.unwrap();
    let dependent = |name: &str, kind: &str, owner_name: &str| {
        let mut map = map(name);
        map["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": kind, "name": owner_name, "uid": owner["metadata"]["uid"]}]);
        map
    };
    let child = |name: &str| dependent(name, "ConfigMap", "owner");
    cluster.apply(namespace, json!([child("child-0")])).await;
    cluster.apply(elsewhere, json!([child("thief")])).await;
    gone(cluster, "configmap", elsewhere, "thief").await;
    cluster
        .apply(namespace, json!([dependent("thief-1", "ConfigMap", "other"), dependent("thief-2", "Secret", "owner")]))
        .await;
    gone(cluster, "configmap", namespace, "thief").await;

    // Whatever is believed of the owner now, these would feel it before the last thief is found.
    cluster.apply(namespace, json!([child("child-1"), child("child-2"), child("child-3")])).await;
    cluster.apply(namespace, json!([dependent("thief-3", "Secret", "third")])).await;
    gone(cluster, "configmap", namespace, "thief").await;
    let left = names(&of(cluster, "configmap", namespace, "child").await);
    assert_eq!(left, ["child-0", "child-1", "child-2", "child-3"]);

    cluster.kubectl(&["delete", "-n", namespace, "configmap/owner", "--cascade=foreground"]).await;
    gone(cluster, "configmap", namespace, "child").await;
}
