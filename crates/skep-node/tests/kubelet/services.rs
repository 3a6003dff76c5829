//! Services lead to pods: by their address, by their name, and from the machine outside.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{IpAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cluster::{Cluster, SELF, SHELL, broker, network};
use crate::look::{script, until};
use crate::ports::{PORT, SERVER};

crate::trials![
    a_deployment_is_reachable,
    pods_of_other_nodes_are_refused,
    balancers_of_a_class_are_left_alone,
    a_port_of_the_node,
    clients_stay_for_their_time,
    pods_are_told_of_services,
];

/// The first argument of this program when it is to tell everybody its name.
pub const SERVER_OF_NAMES: &str = "serve-name";

pub fn serve_name() -> ExitCode {
    let name = std::env::var("HOSTNAME").unwrap();
    for connection in TcpListener::bind(("0.0.0.0", PORT)).unwrap().incoming() {
        // A client that is gone does not want to know.
        let _ = connection.unwrap().write_all(name.as_bytes());
    }
    ExitCode::SUCCESS
}

/// A port that is free on the machine outside.
async fn free_port() -> u16 {
    let listener = broker().listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    listener.local_addr().unwrap().port()
}

/// A service, and its address.
async fn service(cluster: &Cluster, name: &str, spec: Value) -> IpAddr {
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})).await;
    cluster.run(&["get", "service", name, "-o", "jsonpath={.spec.clusterIP}"]).await.out.parse().unwrap()
}

/// A ready pod that runs this program.
async fn serving(cluster: &Cluster, name: &str, labels: &Value, arguments: Value) {
    let container = json!({"name": "main", "image": SELF, "args": arguments,
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1}});
    cluster.labelled_pod(name, labels, json!([container])).await;
    until(cluster, name, "{.status.containerStatuses[0].ready}", "true").await;
}

/// A connection, as soon as somebody takes it.
async fn connected(address: IpAddr, port: u16) -> TcpStream {
    loop {
        if let Ok(connection) = TcpStream::connect((address, port)).await {
            return connection;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn spoken(mut connection: TcpStream) -> String {
    connection.write_all(b"hello").await.unwrap();
    connection.shutdown().await.unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).await.unwrap();
    text
}

/// What a command says, once it says anything.
async fn eventually(cluster: &Cluster, arguments: &[&str]) -> String {
    loop {
        let said = cluster.run(arguments).await;
        if said.code == 0 && !said.out.is_empty() {
            return said.out;
        }
    }
}

async fn a_deployment_is_reachable(cluster: Arc<Cluster>) {
    let port = free_port().await;
    let labels = json!({"app": "letters"});
    let container = json!({"name": "main", "image": SELF, "args": [SERVER, "0.0.0.0"],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1}});
    cluster
        .apply(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "letters"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}}}))
        .await;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "letters"}, "spec": {
            "type": "LoadBalancer", "selector": labels, "ports": [{"port": port, "targetPort": PORT}]}}))
        .await;
    let rolled = cluster.run(&["rollout", "status", "deployment/letters", "--timeout=100s"]).await;
    assert_eq!(rolled.code, 0, "{rolled:?}");
    let ingress = ["get", "service", "letters", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"];
    assert_eq!(eventually(&cluster, &ingress).await, "127.0.0.1");
    let outside = loop {
        // The port opens a moment after the pods are ready.
        if let Ok(connection) = broker().dial("127.0.0.1", port).await {
            connection.set_nonblocking(true).unwrap();
            break TcpStream::from_std(connection).unwrap();
        }
    };
    assert_eq!(spoken(outside).await, "HELLO");
    let address = cluster.run(&["get", "service", "letters", "-o", "jsonpath={.spec.clusterIP}"]).await.out;
    let address: IpAddr = address.parse().unwrap();
    assert_eq!(spoken(TcpStream::connect((address, port)).await.unwrap()).await, "HELLO");
    let look = json!([{"name": "main", "image": SHELL, "command": ["getent", "hosts", "letters.default.svc"]}]);
    cluster.pod("looks", look).await;
    let found = eventually(&cluster, &["logs", "looks"]).await;
    assert!(found.starts_with(&address.to_string()), "{found}");
    let said = cluster.run(&["logs", "deployment/letters"]).await;
    assert_eq!((said.out.as_str(), said.code), ("listening\n", 0), "{said:?}");
    let gone = cluster.run(&["delete", "deployment,service", "letters", "--timeout=60s"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
}

async fn pods_of_other_nodes_are_refused(cluster: Arc<Cluster>) {
    serving(&cluster, "near", &json!({}), json!([SERVER, "0.0.0.0"])).await;
    let near = cluster.run(&["get", "pod", "near", "-o", "jsonpath={.status.podIP}"]).await.out;
    let address = service(&cluster, "split", json!({"ports": [{"port": 80, "targetPort": PORT}]})).await;
    let slice = |name: &str, node: &str, address: &str| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "split"}},
            "ports": [{"name": "", "port": PORT, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "nodeName": node, "conditions": {"ready": true}}]})
    };
    cluster.apply(&slice("split-far", "elsewhere", "10.244.200.200")).await;
    cluster.apply(&slice("split-near", &cluster.node, &near)).await;
    // Every connection finds the one that is near: nobody waits for the other.
    for _ in 0..4 {
        assert_eq!(spoken(connected(address, 80).await).await, "HELLO");
    }
    let gone = cluster.run(&["delete", "endpointslice", "split-near"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    loop {
        match TcpStream::connect((address, 80)).await {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => break,
            // It takes a moment until the news is there.
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    cluster.run(&["delete", "service/split", "endpointslice/split-far"]).await;
}

async fn balancers_of_a_class_are_left_alone(cluster: Arc<Cluster>) {
    let (own, other) = (free_port().await, free_port().await);
    let spec = |port: u16| json!({"type": "LoadBalancer", "ports": [{"port": port}]});
    let mut of_class = spec(other);
    of_class["loadBalancerClass"] = "example.com/theirs".into();
    service(&cluster, "theirs", of_class).await;
    // Whoever comes later is served: the node has seen the other one, too.
    service(&cluster, "ours", spec(own)).await;
    let look = |name: &'static str| ["get", "service", name, "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"];
    assert_eq!(eventually(&cluster, &look("ours")).await, "127.0.0.1");
    let members = "jsonpath={.status.loadBalancer.ingress}{.metadata.annotations.skep\\.dev/local-ports}";
    assert_eq!(cluster.run(&["get", "service", "theirs", "-o", members]).await.out, "");
    cluster.run(&["delete", "service", "ours", "theirs"]).await;
}

async fn a_port_of_the_node(cluster: Arc<Cluster>) {
    let labels = json!({"app": "on-node"});
    serving(&cluster, "on-node", &labels, json!([SERVER, "0.0.0.0"])).await;
    let spec = json!({"type": "NodePort", "selector": labels, "ports": [{"port": 80, "targetPort": PORT}]});
    service(&cluster, "on-node", spec).await;
    let number = ["get", "service", "on-node", "-o", "jsonpath={.spec.ports[0].nodePort}"];
    let number: u16 = cluster.run(&number).await.out.parse().unwrap();
    let node = network().await.node_address();
    assert_eq!(spoken(connected(node.into(), number).await).await, "HELLO");
    let outside = loop {
        if let Ok(connection) = broker().dial("127.0.0.1", number).await {
            connection.set_nonblocking(true).unwrap();
            break TcpStream::from_std(connection).unwrap();
        }
    };
    assert_eq!(spoken(outside).await, "HELLO");
    cluster.run(&["delete", "service", "on-node"]).await;
}

async fn clients_stay_for_their_time(cluster: Arc<Cluster>) {
    let labels = json!({"app": "twins"});
    for name in ["twin-a", "twin-b"] {
        serving(&cluster, name, &labels, json!([SERVER_OF_NAMES])).await;
    }
    let spec = |seconds: u32| {
        json!({"selector": labels, "ports": [{"port": 80, "targetPort": PORT}], "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}})
    };
    let name = |address: IpAddr| async move {
        let mut text = String::new();
        connected(address, 80).await.read_to_string(&mut text).await.unwrap();
        text
    };
    let faithful = service(&cluster, "faithful", spec(10_800)).await;
    // Both are behind it when one that nobody remembers has met both.
    let fickle = service(&cluster, "fickle", spec(1)).await;
    let mut met = BTreeSet::new();
    while met.len() < 2 {
        met.insert(name(fickle).await);
        tokio::time::sleep(Duration::from_millis(1_100)).await;
    }
    let first = name(faithful).await;
    for _ in 0..10 {
        assert_eq!(name(faithful).await, first);
    }
    cluster.run(&["delete", "service", "faithful", "fickle"]).await;
}

async fn pods_are_told_of_services(cluster: Arc<Cluster>) {
    let address = service(&cluster, "told-of", json!({"ports": [{"name": "web", "port": 8081}]})).await;
    let settings =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "colours"}, "data": {"SKY": "blue"}});
    let keys =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words"}, "stringData": {"WORD": "bee"}});
    cluster.apply(&settings).await;
    cluster.apply(&keys).await;
    let mut container = script("echo $TOLD_OF_SERVICE_HOST $TOLD_OF_SERVICE_PORT_WEB $SKY $MY_WORD $BOTH");
    container["envFrom"] =
        json!([{"configMapRef": {"name": "colours"}}, {"prefix": "MY_", "secretRef": {"name": "words"}}]);
    container["env"] = json!([{"name": "BOTH", "value": "$(TOLD_OF_SERVICE_HOST)/$(SKY)"}]);
    // The node learns of the service in its own time.
    for attempt in 0.. {
        let pod = format!("told-{attempt}");
        cluster.pod(&pod, json!([container])).await;
        until(&cluster, &pod, "{.status.phase}", "Succeeded").await;
        let said = cluster.run(&["logs", &pod]).await.out;
        if said.starts_with(&address.to_string()) {
            assert_eq!(said, format!("{address} 8081 blue bee {address}/blue\n"));
            break;
        }
    }
    cluster.run(&["delete", "service", "told-of"]).await;
}
