//! The scheduler, and volumes for claims.

use serde_json::json;

use super::cluster::{CLASS, Cluster, NODE, condition, eventually, holds, text};

pub(crate) async fn a_claim_gets_a_folder_and_gives_it_back(cluster: &Cluster) {
    let namespace = "volumes";
    let claim = json!([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    cluster.apply(namespace, claim).await;
    let bound = eventually("the claim is bound", || async {
        let claim = cluster.get("pvc", namespace, "data").await.unwrap();
        if claim["status"]["phase"] == "Bound" { Ok(claim) } else { Err(claim) }
    })
    .await;
    let name = text(&bound["spec"]["volumeName"]);
    assert_eq!(name, format!("pvc-{}", text(&bound["metadata"]["uid"])));
    assert_eq!(bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"], "yes");
    let volume = eventually("the volume is bound", || async {
        let volume = cluster.get("pv", "", &name).await.unwrap();
        if volume["status"]["phase"] == "Bound" { Ok(volume) } else { Err(volume) }
    })
    .await;
    assert_eq!(volume["spec"]["storageClassName"], CLASS);
    assert_eq!(volume["spec"]["claimRef"]["name"], "data");
    let folder = cluster.volume_folder().join(&name);
    assert_eq!(text(&volume["spec"]["hostPath"]["path"]), folder.display().to_string());
    std::fs::create_dir_all(folder.join("inside")).unwrap();

    // A claim in use stays until its pod is gone.
    let pod = json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"}, "spec": {
        "terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i:1"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}]);
    cluster.apply(namespace, pod).await;
    eventually("the pod runs", || async {
        let pod = cluster.get("pod", namespace, "user").await.unwrap();
        holds(pod["status"]["phase"] == "Running", pod)
    })
    .await;
    cluster.kubectl(&["delete", "pvc", "-n", namespace, "data", "--wait=false"]).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(cluster.get("pvc", namespace, "data").await.is_some(), "a claim in use is protected");
    cluster.kubectl(&["delete", "pod", "-n", namespace, "user"]).await;
    eventually("claim, volume and folder are gone", || async {
        let claim = cluster.get("pvc", namespace, "data").await;
        let volume = cluster.get("pv", "", &name).await;
        holds(claim.is_none() && volume.is_none() && !folder.exists(), (claim, volume, folder.exists()))
    })
    .await;
}

pub(crate) async fn pods_wait_for_a_node_that_fits(cluster: &Cluster) {
    let namespace = "scheduling";
    let pod = json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "picky"}, "spec": {
        "nodeSelector": {"test/disk": "ssd"}, "containers": [{"name": "c", "image": "i:1"}]}}]);
    eventually("the account is there", || async {
        if cluster.get("namespace", "", namespace).await.is_none() {
            cluster.kubectl(&["create", "namespace", namespace]).await;
        }
        cluster.get("serviceaccount", namespace, "default").await.ok_or("no account")
    })
    .await;
    cluster.apply(namespace, pod).await;
    let waiting = eventually("the refusal is told", || async {
        let pod = cluster.get("pod", namespace, "picky").await.unwrap();
        if condition(&pod, "PodScheduled") == "False Unschedulable" { Ok(pod) } else { Err(pod) }
    })
    .await;
    let message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to \
        deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(text(&waiting["status"]["conditions"][0]["message"]), message);
    cluster.kubectl(&["label", "node", NODE, "test/disk=ssd"]).await;
    eventually("the pod runs", || async {
        let pod = cluster.get("pod", namespace, "picky").await.unwrap();
        holds(pod["spec"]["nodeName"] == NODE && pod["status"]["phase"] == "Running", pod)
    })
    .await;
    cluster.is_told(namespace, "picky", &format!("FailedScheduling: {message}")).await;
    cluster.is_told(namespace, "picky", &format!("Scheduled: Successfully assigned {namespace}/picky to {NODE}")).await;
}
