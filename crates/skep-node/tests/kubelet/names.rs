//! What pods know of names: those of the cluster, of the machine and their own.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cluster::{Cluster, SHELL};
use crate::look::{STAY, eventually, script, until};

crate::trials![on_the_network_of_the_node, own_settings_beside_those_of_the_machine, members_of_a_set_have_names];

/// What a script prints in a pod with further members, once it has ended.
async fn printed(cluster: &Cluster, name: &str, text: &str, more: Value) -> String {
    cluster.pod_with(name, json!([script(text)]), more).await;
    until(cluster, name, "{.status.phase}", "Succeeded").await;
    cluster.run(&["logs", name]).await.out
}

async fn on_the_network_of_the_node(cluster: Arc<Cluster>) {
    let more = json!({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet",
        "hostAliases": [{"ip": "192.0.2.9", "hostnames": ["far", "away"]}]});
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "by-name"}, "spec": {
            "ports": [{"port": 80}]}}))
        .await;
    let address = cluster.run(&["get", "service", "by-name", "-o", "jsonpath={.spec.clusterIP}"]).await.out;
    // The name server learns of the service in its own time.
    let look = "cat /etc/hosts; until getent hosts by-name.default.svc; do sleep 0.2; done";
    let text = printed(&cluster, "host-names", look, more).await;
    cluster.run(&["delete", "service", "by-name"]).await;
    assert!(text.contains("192.0.2.9\tfar\taway\n"), "{text}");
    assert!(text.lines().last().unwrap().starts_with(&address), "{text}");
    let of_machine = std::fs::read_to_string("/etc/hosts").unwrap();
    assert!(of_machine.lines().all(|line| text.contains(line)), "{text}");
}

async fn own_settings_beside_those_of_the_machine(cluster: Arc<Cluster>) {
    let more = json!({"dnsPolicy": "Default", "dnsConfig": {"searches": ["example.org"]}});
    let text = printed(&cluster, "own-search", "cat /etc/resolv.conf", more).await;
    let search = text.lines().find(|line| line.starts_with("search ")).unwrap_or_default();
    assert!(search.ends_with(" example.org"), "{text}");
    let of_machine = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let mut servers = of_machine.lines().filter(|line| line.starts_with("nameserver "));
    assert!(servers.all(|line| text.contains(line)), "{text}");
}

async fn members_of_a_set_have_names(cluster: Arc<Cluster>) {
    let labels = json!({"app": "hive"});
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hive"}, "spec": {
            "clusterIP": "None", "selector": labels, "ports": [{"port": 80}]}}))
        .await;
    let container = json!({"name": "main", "image": SHELL, "command": ["/bin/sh", "-c", STAY]});
    cluster
        .apply(&json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "hive"}, "spec": {
            "serviceName": "hive", "replicas": 2, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeName": cluster.node, "terminationGracePeriodSeconds": 0, "containers": [container]}}}}))
        .await;
    let rolled = cluster.run(&["rollout", "status", "statefulset/hive", "--timeout=100s"]).await;
    assert_eq!(rolled.code, 0, "{rolled:?}");
    let path = "jsonpath={.items[*].status.podIP}";
    let addresses = cluster.run(&["get", "pods", "-l", "app=hive", "--sort-by=.metadata.name", "-o", path]).await.out;
    let addresses: Vec<&str> = addresses.split(' ').collect();
    assert_eq!(addresses.len(), 2);
    for (number, address) in addresses.iter().enumerate() {
        // From one of them, by the name that it has among its own.
        let name = format!("hive-{number}.hive");
        eventually(|| async {
            let said = cluster.run(&["exec", "hive-0", "--", "getent", "hosts", &name]).await;
            said.out.starts_with(address)
        })
        .await;
    }
    // The name of the service stands for all of them.
    eventually(|| async {
        let said = cluster.run(&["exec", "hive-0", "--", "getent", "ahostsv4", "hive"]).await.out;
        addresses.iter().all(|address| said.contains(address))
    })
    .await;
    let gone = cluster.run(&["delete", "statefulset,service", "hive", "--timeout=60s"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
}
