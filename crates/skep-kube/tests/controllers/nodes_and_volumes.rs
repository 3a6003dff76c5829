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

async fn account_is_there(cluster: &Cluster, namespace: &str) {
    eventually("the account is there", || async {
        if cluster.get("namespace", "", namespace).await.is_none() {
            cluster.kubectl(&["create", "namespace", namespace]).await;
        }
        cluster.get("serviceaccount", namespace, "default").await.ok_or("no account")
    })
    .await;
}

pub(crate) async fn pods_wait_for_a_node_that_fits(cluster: &Cluster) {
    let namespace = "scheduling";
    let pod = json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "picky"}, "spec": {
        "nodeSelector": {"test/disk": "ssd"}, "containers": [{"name": "c", "image": "i:1"}]}}]);
    account_is_there(cluster, namespace).await;
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

/// The node has 64 CPUs, and nobody else asks for any.
pub(crate) async fn pods_wait_for_room(cluster: &Cluster) {
    let namespace = "crowded";
    let pod = |name: &str, cpus: u32| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpus}}}]}})
    };
    account_is_there(cluster, namespace).await;
    let no_room = |ending: &str| {
        format!(
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are \
             available: 1 {ending}."
        )
    };
    let message = |pod: &serde_json::Value| text(&pod["status"]["conditions"][0]["message"]);
    cluster.apply(namespace, json!([pod("giant", 1000), pod("hog", 40)])).await;
    eventually("the hog runs and the giant cannot", || async {
        let hog = cluster.get("pod", namespace, "hog").await.unwrap();
        let giant = cluster.get("pod", namespace, "giant").await.unwrap();
        let hopeless = message(&giant) == no_room("Preemption is not helpful for scheduling");
        holds(hog["status"]["phase"] == "Running" && hopeless, (hog, giant))
    })
    .await;

    let late = ["late-1", "late-2", "late-3"];
    cluster.apply(namespace, json!(late.map(|name| pod(name, 20)))).await;
    let late_pods = async || {
        let mut pods = cluster.list("pod", namespace).await;
        pods.retain(|pod| super::cluster::name_of(pod).starts_with("late"));
        pods
    };
    eventually("there is room for one more", || async {
        let pods = late_pods().await;
        let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        let told = pods.iter().filter(|pod| message(pod) == no_room("No preemption victims found for incoming pod"));
        holds(running == 1 && told.count() == 2, pods)
    })
    .await;
    cluster.kubectl(&["delete", "-n", namespace, "pod/hog"]).await;
    eventually("the others have taken the room", || async {
        let pods = late_pods().await;
        holds(pods.iter().all(|pod| pod["status"]["phase"] == "Running"), pods)
    })
    .await;
}
