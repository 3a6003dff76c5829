//! `skep node` that is killed: nothing of it is left, and the next start goes on with the same pods.

use serde_json::json;
use skep_conformance::processes::{Family, inner, marked};

use crate::ALL;
use crate::cluster::Cluster;

/// Where the pod is known by, and how often its container was started again.
const IDENTITY: &str = "jsonpath={.metadata.uid} {.status.podIP} {.spec.nodeName}";
const RESTARTS: &str = "jsonpath={.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}";

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_leaves_nothing_and_goes_on_with_its_pods() {
    let Some(cluster) = Cluster::start_or_skip("a_killed_node_leaves_nothing_and_goes_on_with_its_pods").await else {
        return;
    };
    let Some(mut node) = cluster.join(ALL) else { return };
    // The folder of the node, which is in the arguments of its processes, too.
    let mark = cluster.folder().join("bee").display().to_string();
    // A daemon that has left its group and its session, beside the program itself.
    let script = "echo run >> /v/runs; cat /v/runs; setsid sleep 100000 & exec sleep 100000";
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stays"}, "spec": {
        "containers": [{"name": "main", "image": "shell", "args": [script], "env": [{"name": "MARK", "value": mark}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}]}}));
    let look = ["get", "pod", "stays", "-o", RESTARTS];
    cluster.until("it runs", &look, |text| text == "true 0").await;
    let before = cluster.said(&["get", "pod", "stays", "-o", IDENTITY]);
    for (round, outside) in [(1, true), (2, false)] {
        let outer = node.process();
        let family = Family::of(outer);
        let victim = if outside { outer } else { inner(outer).unwrap() };
        node.killed(victim).await;
        cluster.until("nothing is left", &["version"], |_| family.left().is_empty() && marked(&mark).is_empty()).await;
        node = cluster.join(ALL).unwrap();
        cluster.until("it runs again", &look, |text| text == format!("true {round}")).await;
        assert_eq!(cluster.said(&["get", "pod", "stays", "-o", IDENTITY]), before);
        assert_eq!(cluster.said(&["logs", "stays"]), "run\n".repeat(round + 1), "its scratch space is kept");
    }
}
