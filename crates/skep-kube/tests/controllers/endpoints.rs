//! Services and their endpoints.

use serde_json::{Value, json};

use super::cluster::{Cluster, eventually, holds, name_of, text};

fn objects() -> Value {
    let service = |name: &str, extra: Value| {
        let mut spec = json!({"selector": {"app": "web"}, "ports": [{"name": "h", "port": 80, "targetPort": "http"}]});
        json_patch::merge(&mut spec, &extra);
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": {"l": "m"}}, "spec": spec})
    };
    json!([
        service("web", json!({})),
        service("head", json!({"clusterIP": "None"})),
        service("all", json!({"publishNotReadyAddresses": true})),
        service("none", json!({"selector": {"app": "nothing"}})),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                    {"name": "c", "image": "i:1", "ports": [{"name": "http", "containerPort": 8080}]}]}}}},
    ])
}

/// The endpoints of a Service as `pod ready serving`, by name.
async fn slices(cluster: &Cluster, namespace: &str, service: &str) -> (Vec<Value>, Vec<String>) {
    let mut slices = cluster.list("endpointslice", namespace).await;
    slices.retain(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == service);
    let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default());
    let mut shown: Vec<String> = endpoints
        .map(|one| {
            let conditions = &one["conditions"];
            format!("{} {} {}", text(&one["targetRef"]["name"]), conditions["ready"], conditions["serving"])
        })
        .collect();
    shown.sort();
    (slices, shown)
}

async fn shows(cluster: &Cluster, namespace: &str, service: &str, expected: &[String]) -> Vec<Value> {
    eventually(&format!("{service} shows {expected:?}"), || async {
        let (slices, shown) = slices(cluster, namespace, service).await;
        if shown == expected { Ok(slices) } else { Err(shown) }
    })
    .await
}

pub(crate) async fn endpoints_follow_readiness(cluster: &Cluster) {
    let namespace = "endpoints";
    cluster.apply(namespace, objects()).await;
    cluster.kubectl(&["rollout", "status", "-n", namespace, "deployment/web", "--timeout=60s"]).await;
    let pods = cluster.list("pod", namespace).await;
    let (one, other) = (name_of(&pods[0]), name_of(&pods[1]));
    let ready = [format!("{one} true true"), format!("{other} true true")];
    let slice = shows(cluster, namespace, "web", &ready).await.remove(0);
    let labels = json!({"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": "web", "l": "m"});
    assert_eq!(slice["metadata"]["labels"], labels);
    assert_eq!(slice["ports"], json!([{"name": "h", "port": 8080, "protocol": "TCP"}]));
    assert_eq!(slice["metadata"]["ownerReferences"][0]["name"], "web");
    let headless = shows(cluster, namespace, "head", &ready).await.remove(0);
    assert_eq!(headless["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(shows(cluster, namespace, "none", &[]).await.len(), 1, "an empty slice says that there is nobody");

    cluster.patch("pod", namespace, &one, json!({"metadata": {"annotations": {"test/ready": "false"}}})).await;
    shows(cluster, namespace, "web", &[format!("{one} false false"), format!("{other} true true")]).await;
    shows(cluster, namespace, "all", &[format!("{one} true false"), format!("{other} true true")]).await;
    let subset = eventually("the Endpoints say the same", || async {
        let endpoints = cluster.get("endpoints", namespace, "web").await.unwrap();
        let subset = endpoints["subsets"][0].clone();
        let waits = subset["notReadyAddresses"][0]["targetRef"]["name"] == one;
        if waits { Ok(subset) } else { Err(endpoints) }
    })
    .await;
    assert_eq!(subset["addresses"][0]["targetRef"]["name"], other);
    assert_eq!(subset["ports"], json!([{"name": "h", "port": 8080, "protocol": "TCP"}]));

    cluster.kubectl(&["delete", "service", "-n", namespace, "web"]).await;
    eventually("its endpoints are gone", || async {
        let (slices, _) = slices(cluster, namespace, "web").await;
        let endpoints = cluster.get("endpoints", namespace, "web").await;
        holds(slices.is_empty() && endpoints.is_none(), (slices, endpoints))
    })
    .await;
}

pub(crate) async fn pods_count_once_their_node_is_known(cluster: &Cluster) {
    let (namespace, node) = ("placed", "late");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i:1"}]}});
    cluster.apply(namespace, json!([service, pod])).await;
    let status = json!({"status": {"phase": "Running", "podIP": "10.9.8.7", "podIPs": [{"ip": "10.9.8.7"}],
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let arguments = ["patch", "pod", "-n", namespace, "web", "--subresource=status", "--type=merge", "-p"];
    cluster.kubectl(&[&arguments[..], &[&status.to_string()]].concat()).await;
    // Endpoints, which do not ask for nodes, tell that the pod was seen.
    eventually("the Endpoints have the pod", || async {
        let endpoints = cluster.get("endpoints", namespace, "web").await.unwrap_or_default();
        holds(endpoints["subsets"][0]["addresses"][0]["ip"] == "10.9.8.7", endpoints)
    })
    .await;
    shows(cluster, namespace, "web", &[]).await;
    let file = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node, "labels": {"topology.kubernetes.io/zone": "attic"}}});
    cluster.apply(namespace, json!([file])).await;
    let slice = shows(cluster, namespace, "web", &["web true true".to_owned()]).await.remove(0);
    assert_eq!((&slice["endpoints"][0]["nodeName"], &slice["endpoints"][0]["zone"]), (&json!(node), &json!("attic")));
    cluster.kubectl(&["delete", "node", node]).await;
}

/// Endpoints that a person wrote for a Service without a selector are found through slices.
pub(crate) async fn endpoints_of_others_are_mirrored(cluster: &Cluster) {
    let namespace = "mirrored";
    let addresses = |addresses: Value, labels: Value| {
        json!([
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "outside", "labels": {"s": "t"}},
                "spec": {"ports": [{"name": "db", "port": 5432}]}},
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "outside", "labels": labels,
                "annotations": {"a": "b"}}, "subsets": addresses},
        ])
    };
    let mirrored = async |what: &str, expected: Value| {
        eventually(what, || async {
            let (slices, _) = slices(cluster, namespace, "outside").await;
            let mut shown: Vec<Value> = slices
                .iter()
                .map(|slice| {
                    let (metadata, owner) = (&slice["metadata"], &slice["metadata"]["ownerReferences"][0]);
                    json!({
                        "labels": metadata["labels"], "annotations": metadata["annotations"],
                        "owner": format!("{} {}", text(&owner["kind"]), text(&owner["name"])),
                        "type": slice["addressType"], "ports": slice["ports"], "endpoints": slice["endpoints"],
                    })
                })
                .collect();
            shown.sort_by_key(|slice| text(&slice["type"]));
            if json!(shown) == expected { Ok(()) } else { Err(json!(shown)) }
        })
        .await;
    };
    let slice = |family: &str, endpoints: Value| {
        json!({
            "labels": {"l": "m", "kubernetes.io/service-name": "outside",
                "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"},
            "annotations": {"a": "b"}, "owner": "Endpoints outside", "type": family,
            "ports": [{"name": "db", "port": 5432, "protocol": "TCP"}], "endpoints": endpoints,
        })
    };
    let ports = json!([{"name": "db", "port": 5432}]);
    let one =
        json!([{"addresses": [{"ip": "192.0.2.7"}], "notReadyAddresses": [{"ip": "2001:db8::7"}], "ports": ports}]);
    cluster.apply(namespace, addresses(one, json!({"l": "m"}))).await;
    let ready = |address: &str, is_ready: bool| json!({"addresses": [address], "conditions": {"ready": is_ready}});
    let (four, six) =
        (slice("IPv4", json!([ready("192.0.2.7", true)])), slice("IPv6", json!([ready("2001:db8::7", false)])));
    mirrored("both families are told", json!([four, six])).await;

    let other = json!([{"addresses": [{"ip": "192.0.2.8", "hostname": "eight"}], "ports": ports}]);
    cluster.apply(namespace, addresses(other.clone(), json!({"l": "m"}))).await;
    let mut eight = ready("192.0.2.8", true);
    eight["hostname"] = json!("eight");
    mirrored("a change is followed", json!([slice("IPv4", json!([eight]))])).await;

    let skipped = json!({"l": "m", "endpointslice.kubernetes.io/skip-mirror": "true"});
    cluster.apply(namespace, addresses(other.clone(), skipped)).await;
    mirrored("those who write slices themselves are left alone", json!([])).await;
    cluster.apply(namespace, addresses(other, json!({"l": "m"}))).await;
    mirrored("until they do not", json!([slice("IPv4", json!([eight]))])).await;
    cluster.kubectl(&["delete", "service", "-n", namespace, "outside"]).await;
    mirrored("and nothing is left without the service", json!([])).await;
}
