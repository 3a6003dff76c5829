//! Deployments and ReplicaSets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use super::cluster::{Cluster, condition, eventually, holds, name_of, names};

fn deployment(replicas: i32, strategy: &Value) -> Value {
    json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "annotations": {"own": "1"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "strategy": strategy,
            "progressDeadlineSeconds": 30, "revisionHistoryLimit": 2, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i:1"}]}}},
    }])
}

const SAFE: fn() -> Value =
    || json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "34%", "maxUnavailable": "0%"}});

async fn rolled_out(cluster: &Cluster, namespace: &str) {
    cluster.kubectl(&["rollout", "status", "-n", namespace, "deployment/web", "--timeout=60s"]).await;
}

/// Watches a Deployment and fails if it leaves its bounds.
fn guard(cluster: &Cluster, namespace: &str, least: i32, most: i32) -> (Arc<AtomicBool>, tokio::task::JoinHandle<()>) {
    let broken = Arc::new(AtomicBool::new(false));
    let api = Api::<Deployment>::namespaced(cluster.client(), namespace);
    let replica_sets = Api::<ReplicaSet>::namespaced(cluster.client(), namespace);
    let pods = Api::<Pod>::namespaced(cluster.client(), namespace);
    let flag = broken.clone();
    let task = tokio::spawn(async move {
        let mut changes = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
        let mut begun = false;
        while let Some(Ok(_)) = changes.next().await {
            // Two sets report one after the other, so that the sum in a status may lag behind; the pods are what counts.
            let found = pods.list(&kube::api::ListParams::default()).await.unwrap();
            let is_ready = |pod: &&Pod| {
                let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
            };
            let available = found.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).filter(is_ready);
            let available = i32::try_from(available.count()).unwrap();
            // What is asked for, not what is there: a pod takes a moment to go.
            let listed = replica_sets.list(&kube::api::ListParams::default()).await.unwrap();
            let all: i32 = listed.items.iter().filter_map(|found| found.spec.as_ref()?.replicas).sum();
            // The server's cache may begin with a state from before the guard was set.
            begun |= available >= least;
            if begun && (available < least || all > most) {
                eprintln!("out of bounds: {available} available, {all} in all");
                flag.store(true, Ordering::Relaxed);
            }
        }
    });
    (broken, task)
}

pub(crate) async fn a_rollout_keeps_its_bounds_and_can_be_paused_and_undone(cluster: &Cluster) {
    let namespace = "rollout";
    cluster.apply(namespace, deployment(3, &SAFE())).await;
    rolled_out(cluster, namespace).await;
    let first = cluster.get("deployment", namespace, "web").await.unwrap();
    assert_eq!(condition(&first, "Available"), "True MinimumReplicasAvailable");
    assert_eq!(condition(&first, "Progressing"), "True NewReplicaSetAvailable");
    let expected = json!({"availableReplicas": 3, "observedGeneration": 1, "readyReplicas": 3, "replicas": 3,
        "terminatingReplicas": 0, "updatedReplicas": 3});
    let mut status = first["status"].clone();
    status.as_object_mut().unwrap().remove("conditions");
    assert_eq!(status, expected);

    let oldest = name_of(&cluster.list("replicaset", namespace).await[0]);
    let told = format!("ScalingReplicaSet: Scaled up replica set {oldest} from 0 to 3");
    cluster.is_told(namespace, "web", &told).await;

    let (broken, guarding) = guard(cluster, namespace, 3, 5);
    cluster.kubectl(&["set", "image", "-n", namespace, "deployment/web", "c=i:2"]).await;
    rolled_out(cluster, namespace).await;
    let second = cluster.get("deployment", namespace, "web").await.unwrap();
    assert_eq!(second["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");

    cluster.kubectl(&["rollout", "pause", "-n", namespace, "deployment/web"]).await;
    eventually("the pause is told", || async {
        let paused = cluster.get("deployment", namespace, "web").await.unwrap();
        holds(condition(&paused, "Progressing") == "Unknown DeploymentPaused", paused)
    })
    .await;
    cluster.kubectl(&["set", "image", "-n", namespace, "deployment/web", "c=i:3"]).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(cluster.list("replicaset", namespace).await.len(), 2, "nothing is rolled out while paused");
    cluster.kubectl(&["rollout", "resume", "-n", namespace, "deployment/web"]).await;
    rolled_out(cluster, namespace).await;
    assert_eq!(cluster.list("replicaset", namespace).await.len(), 3);

    cluster.kubectl(&["rollout", "undo", "-n", namespace, "deployment/web"]).await;
    rolled_out(cluster, namespace).await;
    let back = cluster.get("deployment", namespace, "web").await.unwrap();
    assert_eq!(back["spec"]["template"]["spec"]["containers"][0]["image"], "i:2");
    assert_eq!(back["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "4");
    let history = cluster.kubectl(&["rollout", "history", "-n", namespace, "deployment/web"]).await;
    let revisions: Vec<_> = history.lines().skip(2).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(revisions, ["1", "3", "4"], "{history}");

    cluster.kubectl(&["rollout", "restart", "-n", namespace, "deployment/web"]).await;
    rolled_out(cluster, namespace).await;
    eventually("the history is cut", || async {
        let kept = cluster.list("replicaset", namespace).await;
        holds(kept.len() == 3, names(&kept))
    })
    .await;
    assert!(!broken.load(Ordering::Relaxed), "the rollouts left their bounds");
    guarding.abort();

    cluster.kubectl(&["scale", "-n", namespace, "deployment/web", "--replicas=1"]).await;
    rolled_out(cluster, namespace).await;
    let current = cluster.list("replicaset", namespace).await;
    let current = current.iter().find(|found| found["spec"]["replicas"] == 1).unwrap();
    assert_eq!(current["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"], "1");
    assert_eq!(current["metadata"]["annotations"]["own"], "1");
}

pub(crate) async fn a_bad_image_misses_the_progress_deadline(cluster: &Cluster) {
    let namespace = "bad-image";
    let mut objects = deployment(2, &SAFE());
    objects[0]["spec"]["progressDeadlineSeconds"] = json!(3);
    cluster.apply(namespace, objects).await;
    eventually("the first rollout is over", || async {
        let first = cluster.get("deployment", namespace, "web").await.unwrap();
        holds(first["status"]["availableReplicas"] == 2, first)
    })
    .await;
    cluster.kubectl(&["set", "image", "-n", namespace, "deployment/web", "c=bad"]).await;
    let late = eventually("the deadline is missed", || async {
        let late = cluster.get("deployment", namespace, "web").await.unwrap();
        if condition(&late, "Progressing") == "False ProgressDeadlineExceeded" { Ok(late) } else { Err(late) }
    })
    .await;
    assert_eq!(condition(&late, "Available"), "True MinimumReplicasAvailable", "the old pods serve on");
    let told = cluster.try_kubectl(&["rollout", "status", "-n", namespace, "deployment/web"]).await.unwrap_err();
    assert!(told.contains("exceeded its progress deadline"), "{told}");
    cluster.kubectl(&["rollout", "undo", "-n", namespace, "deployment/web"]).await;
    rolled_out(cluster, namespace).await;
}

pub(crate) async fn recreate_never_mixes_templates(cluster: &Cluster) {
    let namespace = "recreate";
    cluster.apply(namespace, deployment(2, &json!({"type": "Recreate"}))).await;
    rolled_out(cluster, namespace).await;
    let client = cluster.client();
    let mixed = Arc::new(AtomicBool::new(false));
    let flag = mixed.clone();
    let watching = tokio::spawn(async move {
        let api = Api::<k8s_openapi::api::core::v1::Pod>::namespaced(client, namespace);
        loop {
            let pods = api.list(&kube::api::ListParams::default()).await.unwrap();
            let images: std::collections::BTreeSet<_> =
                pods.items.iter().map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone()).collect();
            if images.len() > 1 {
                flag.store(true, Ordering::Relaxed);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    cluster.kubectl(&["set", "image", "-n", namespace, "deployment/web", "c=i:2"]).await;
    rolled_out(cluster, namespace).await;
    watching.abort();
    assert!(!mixed.load(Ordering::Relaxed), "pods of both templates were there at the same time");
}

pub(crate) async fn pods_are_adopted_and_released_by_their_labels(cluster: &Cluster) {
    let namespace = "adoption";
    let replica_set = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "set"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": {
            "metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}},
    }]);
    let stray = json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stray", "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}}]);
    eventually("the account is there", || async {
        if cluster.get("namespace", "", namespace).await.is_none() {
            cluster.kubectl(&["create", "namespace", namespace]).await;
        }
        cluster.get("serviceaccount", namespace, "default").await.ok_or("no account")
    })
    .await;
    cluster.apply(namespace, stray).await;
    cluster.apply(namespace, replica_set).await;
    eventually("the stray is adopted", || async {
        let pods = cluster.list("pod", namespace).await;
        let owned = |pod: &Value| pod["metadata"]["ownerReferences"][0]["name"] == "set";
        holds(pods.len() == 2 && pods.iter().all(owned) && names(&pods).contains(&"stray".into()), pods)
    })
    .await;
    cluster.patch("pod", namespace, "stray", json!({"metadata": {"labels": {"app": "other"}}})).await;
    eventually("the stranger is released and replaced", || async {
        let pods = cluster.list("pod", namespace).await;
        let stray = pods.iter().find(|pod| name_of(pod) == "stray").unwrap();
        holds(pods.len() == 3 && stray["metadata"].get("ownerReferences").is_none(), pods)
    })
    .await;
    let status = eventually("the counts are right", || async {
        let set = cluster.get("replicaset", namespace, "set").await.unwrap();
        if set["status"]["availableReplicas"] == 2 { Ok(set["status"].clone()) } else { Err(set) }
    })
    .await;
    let expected = json!({"availableReplicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1,
        "readyReplicas": 2, "replicas": 2, "terminatingReplicas": 0});
    assert_eq!(status, expected);
    cluster.is_told(namespace, "set", "SuccessfulCreate: Created pod: set-").await;
}
