//! What pods get of what they ask for: users, groups, privileges, and room.

use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::{Value, json};

use crate::cluster::{Cluster, SHELL, network};
use crate::look::{STAY, eventually};

crate::trials![
    users_and_groups_share_volumes,
    tokens_are_for_the_user_of_the_pod,
    privileges_are_dropped,
    a_volume_in_memory_is_as_large_as_it_may_be,
    a_volume_that_grows_too_large_evicts_its_pod,
    what_is_not_honoured_is_told,
    a_crowd_gives_its_addresses_back,
];

/// A container that runs a script, with further members.
fn container(script: &str, more: Value) -> Value {
    let mut container = json!({"name": "main", "image": SHELL, "command": ["/bin/sh", "-c", script]});
    let (Value::Object(container_members), Value::Object(more)) = (&mut container, more) else { return container };
    container_members.extend(more);
    container
}

/// A pod with further members in its specification; what it printed when it has ended.
async fn printed(cluster: &Cluster, name: &str, container: Value, more: Value) -> String {
    cluster.pod_with(name, json!([container]), more).await;
    let pod = format!("pod/{name}");
    let waited = cluster.run(&["wait", &pod, "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"]).await;
    let log = cluster.run(&["logs", name]).await.out;
    assert_eq!(waited.code, 0, "{waited:?} {log}");
    log
}

async fn users_and_groups_share_volumes(cluster: Arc<Cluster>) {
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shared"}, "stringData": {"key": "word"}}))
        .await;
    let script = "id -u; id -g; id -G; stat -c '%g %a' /scratch; touch /scratch/made; stat -c '%u %g' /scratch/made; \
        cat /secret/key; echo; stat -Lc '%g %a' /secret/key";
    let mounts = json!({"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}, {"name": "secret", "mountPath": "/secret"}]});
    let more = json!({"securityContext": {"runAsUser": 1234, "runAsGroup": 2345, "fsGroup": 3456, "supplementalGroups": [4567]},
        "volumes": [{"name": "scratch", "emptyDir": {}},
            {"name": "secret", "secret": {"secretName": "shared", "defaultMode": 0o400}}]});
    let text = printed(&cluster, "shares", container(script, mounts), more).await;
    let lines: Vec<&str> = text.lines().collect();
    if rustix::process::geteuid().is_root()
        && std::fs::read_to_string("/proc/self/setgroups").unwrap().trim() == "allow"
    {
        let groups = ["2345 3456 4567", "2345 4567 3456"];
        assert!(groups.contains(&lines[2]), "{text}");
        let rest = ["1234", "2345", "3456 2777", "1234 3456", "word", "3456 440"];
        assert_eq!([lines[0], lines[1], lines[3], lines[4], lines[5], lines[6]], rest, "{text}");
    } else {
        assert_eq!([lines[0], lines[1], lines[5]], ["1234", "2345", "word"], "{text}");
    }
}

async fn tokens_are_for_the_user_of_the_pod(cluster: Arc<Cluster>) {
    let script = "stat -Lc '%u %g %a' /token/t; test -s /token/t && cat /token/t > /dev/null && echo read";
    let mounts = json!({"volumeMounts": [{"name": "token", "mountPath": "/token"}]});
    let volumes = json!([{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]);
    let is_root = std::fs::read_to_string("/proc/self/setgroups").unwrap().trim() == "allow";
    for (name, security, expected) in [
        ("token-of-user", json!({"runAsUser": 1234, "runAsGroup": 2345}), "1234 0 600\nread\n"),
        ("token-of-both", json!({"runAsUser": 1234, "fsGroup": 3456}), "1234 3456 640\nread\n"),
        ("token-of-anybody", json!({}), "0 0 644\nread\n"),
    ] {
        let more = json!({"securityContext": security, "volumes": volumes});
        let text = printed(&cluster, name, container(script, mounts.clone()), more).await;
        assert!(text.ends_with("read\n") && (!is_root || text == expected), "{name}: {text}");
    }
}

async fn privileges_are_dropped(cluster: Arc<Cluster>) {
    let script = "grep CapEff /proc/self/status; touch /tmp/x 2>/dev/null || echo read-only";
    let security = json!({"securityContext": {"readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}});
    let text = printed(&cluster, "drops", container(script, security), json!({})).await;
    assert_eq!(text, "CapEff:\t0000000000000400\nread-only\n");
}

async fn a_volume_in_memory_is_as_large_as_it_may_be(cluster: Arc<Cluster>) {
    let script = "stat -fc %T /m; head -c 500000 /dev/zero > /m/fits && echo fits; \
        head -c 900000 /dev/zero > /m/not 2>/dev/null || echo full";
    let mounts = json!({"volumeMounts": [{"name": "m", "mountPath": "/m"}]});
    let more = json!({"volumes": [{"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]});
    let text = printed(&cluster, "in-memory", container(script, mounts), more).await;
    assert_eq!(text, "tmpfs\nfits\nfull\n");
}

async fn a_volume_that_grows_too_large_evicts_its_pod(cluster: Arc<Cluster>) {
    let script = "head -c 3000000 /dev/urandom > /v/much; while :; do sleep 0.2; done";
    let mounts = json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let more = json!({"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]});
    cluster.pod_with("evicted", json!([container(script, mounts)]), more).await;
    let waited =
        cluster.run(&["wait", "pod/evicted", "--for=jsonpath={.status.reason}=Evicted", "--timeout=90s"]).await;
    assert_eq!(waited.code, 0, "{waited:?}");
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    let status = pods.get("evicted").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.message.unwrap(), "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
}

async fn what_is_not_honoured_is_told(cluster: Arc<Cluster>) {
    let resources = json!({"resources": {"limits": {"memory": "64Mi"}}});
    let text = printed(&cluster, "misses", container("true", resources), json!({"hostPID": true})).await;
    assert_eq!(text, "");
    let events = ["events", "--for=pod/misses"];
    let mut told = cluster.run(&events).await.out;
    while !told.contains("NotHonoured") {
        told = cluster.run(&events).await.out;
    }
    assert!(told.contains("without: hostPID") && told.contains("main: resources.limits memory"), "{told}");
}

async fn a_crowd_gives_its_addresses_back(cluster: Arc<Cluster>) {
    let names: Vec<String> = (0..12).map(|number| format!("crowd-{number}")).collect();
    for name in &names {
        cluster.pod(name, json!([container(STAY, json!({}))])).await;
    }
    for name in &names {
        cluster.settled(name).await;
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    let mut addresses = Vec::new();
    for name in &names {
        let address = pods.get(name).await.unwrap().status.and_then(|status| status.pod_ip).unwrap();
        addresses.push(address.parse::<Ipv4Addr>().unwrap());
    }
    let network = network().await;
    let taken = network.taken();
    assert!(addresses.iter().all(|address| taken.contains(address)), "{addresses:?} {taken:?}");
    let gone = cluster
        .run(&[&["delete", "pod", "--timeout=60s"][..], &names.iter().map(String::as_str).collect::<Vec<_>>()].concat())
        .await;
    assert_eq!(gone.code, 0, "{gone:?}");
    eventually(|| async {
        let taken = network.taken();
        !addresses.iter().any(|address| taken.contains(address))
    })
    .await;
}
