//! StatefulSets.

use serde_json::{Value, json};

use super::cluster::{Cluster, condition, eventually, holds, name_of, names, text};

fn set(overlay: &Value) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"serviceName": "db", "replicas": 3, "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {
                "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i:1"}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}}}}]},
    });
    json_patch::merge(&mut set, overlay);
    json!([set])
}

async fn settled(cluster: &Cluster, namespace: &str, check: impl Fn(&Value) -> bool) -> Value {
    eventually("the set is settled", || async {
        let set = cluster.get("statefulset", namespace, "db").await.unwrap();
        let observed = set["status"]["observedGeneration"] == set["metadata"]["generation"];
        if observed && check(&set["status"]) { Ok(set["status"].clone()) } else { Err(set) }
    })
    .await
}

/// Waits until the pods are ready and have these images, in the order of their ordinals. A status alone may be older
/// than the pods.
async fn run_images(cluster: &Cluster, namespace: &str, expected: &[&str]) {
    eventually(&format!("the images are {expected:?}"), || async {
        let pods = cluster.list("pod", namespace).await;
        let images: Vec<_> = pods.iter().map(|pod| text(&pod["spec"]["containers"][0]["image"])).collect();
        let ready = pods.iter().all(|pod| condition(pod, "Ready").starts_with("True"));
        holds(ready && images == expected, images)
    })
    .await;
}

pub(crate) async fn pods_come_in_order_and_are_updated_from_the_end(cluster: &Cluster) {
    let namespace = "ordered";
    come_in_order_and_are_updated(cluster, namespace, &json!({})).await;
    let claims = cluster.list("pvc", namespace).await;
    assert_eq!(names(&claims), ["data-db-0", "data-db-1", "data-db-2"], "claims are retained");
    assert!(claims.iter().all(|claim| claim["status"]["phase"] == "Bound"), "{claims:#?}");
    let told = "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success";
    cluster.is_told(namespace, "db", told).await;
}

pub(crate) async fn pods_without_volumes_come_in_order(cluster: &Cluster) {
    let without = json!({"spec": {"volumeClaimTemplates": null}});
    come_in_order_and_are_updated(cluster, "without-volumes", &without).await;
}

async fn come_in_order_and_are_updated(cluster: &Cluster, namespace: &str, overlay: &Value) {
    cluster.apply(namespace, set(overlay)).await;
    let first = settled(cluster, namespace, |status| status["availableReplicas"] == 3).await;
    let pods = cluster.list("pod", namespace).await;
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2"]);
    let created: Vec<i64> = pods.iter().map(|pod| text(&pod["metadata"]["resourceVersion"]).parse().unwrap()).collect();
    assert!(created.is_sorted(), "one became ready after the other: {created:?}");
    let labels = &pods[1]["metadata"]["labels"];
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-1");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(labels["controller-revision-hash"], first["updateRevision"]);
    assert_eq!(first["currentRevision"], first["updateRevision"]);
    assert_eq!(pods[1]["spec"]["hostname"], "db-1");
    cluster.is_told(namespace, "db", "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful").await;

    let patch = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}, "template": {"spec": {
        "containers": [{"name": "c", "image": "i:2"}]}}}});
    cluster.patch("statefulset", namespace, "db", patch).await;
    let partly =
        settled(cluster, namespace, |status| status["updatedReplicas"] == 1 && status["availableReplicas"] == 3).await;
    assert_eq!(partly["currentReplicas"], 2);
    assert_ne!(partly["currentRevision"], partly["updateRevision"]);
    run_images(cluster, namespace, &["i:1", "i:1", "i:2"]).await;
    // A pod below the partition comes back as it was.
    cluster.kubectl(&["delete", "pod", "-n", namespace, "db-0"]).await;
    settled(cluster, namespace, |status| status["availableReplicas"] == 3 && status["updatedReplicas"] == 1).await;
    run_images(cluster, namespace, &["i:1", "i:1", "i:2"]).await;

    let patch = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    cluster.patch("statefulset", namespace, "db", patch).await;
    cluster.kubectl(&["rollout", "status", "-n", namespace, "statefulset/db", "--timeout=60s"]).await;
    // The real controller writes the revision before it counts again.
    settled(cluster, namespace, |status| {
        status["currentRevision"] == status["updateRevision"] && status["currentReplicas"] == 3
    })
    .await;
    run_images(cluster, namespace, &["i:2", "i:2", "i:2"]).await;
    let revisions = cluster.list("controllerrevision", namespace).await;
    let mut numbers: Vec<_> = revisions.iter().map(|revision| revision["revision"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);

    cluster.kubectl(&["rollout", "undo", "-n", namespace, "statefulset/db"]).await;
    cluster.kubectl(&["rollout", "status", "-n", namespace, "statefulset/db", "--timeout=60s"]).await;
    settled(cluster, namespace, |status| status["currentRevision"] == first["currentRevision"]).await;

    cluster.kubectl(&["scale", "-n", namespace, "statefulset/db", "--replicas=1"]).await;
    settled(cluster, namespace, |status| status["replicas"] == 1).await;
}

pub(crate) async fn claims_go_when_the_policy_says_so(cluster: &Cluster) {
    let namespace = "claims";
    let policy = json!({"spec": {"replicas": 2, "podManagementPolicy": "Parallel",
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"}}});
    cluster.apply(namespace, set(&policy)).await;
    settled(cluster, namespace, |status| status["availableReplicas"] == 2).await;
    cluster.kubectl(&["scale", "-n", namespace, "statefulset/db", "--replicas=1"]).await;
    eventually("the claim of the second pod is gone", || async {
        let claims = cluster.list("pvc", namespace).await;
        holds(names(&claims) == ["data-db-0"], claims)
    })
    .await;
    cluster.kubectl(&["delete", "-n", namespace, "statefulset/db"]).await;
    eventually("everything is gone", || async {
        let mut rest = cluster.list("pvc", namespace).await;
        rest.extend(cluster.list("pod", namespace).await);
        rest.extend(cluster.list("controllerrevision", namespace).await);
        holds(rest.is_empty(), rest.iter().map(name_of).collect::<Vec<_>>())
    })
    .await;
}
