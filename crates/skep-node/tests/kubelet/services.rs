//! Services lead to pods: by their address, by their name, and from the machine outside.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cluster::{Cluster, SELF, SHELL, broker};
use crate::ports::{PORT, SERVER};

crate::trials![a_deployment_is_reachable];

/// A port that is free on the machine outside.
async fn free_port() -> u16 {
    let listener = broker().listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    listener.local_addr().unwrap().port()
}

async fn told(mut connection: TcpStream) -> String {
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
    assert_eq!(told(outside).await, "HELLO");
    let address = cluster.run(&["get", "service", "letters", "-o", "jsonpath={.spec.clusterIP}"]).await.out;
    let address: IpAddr = address.parse().unwrap();
    assert_eq!(told(TcpStream::connect((address, port)).await.unwrap()).await, "HELLO");
    let look = json!([{"name": "main", "image": SHELL, "command": ["getent", "hosts", "letters.default.svc"]}]);
    cluster.pod("looks", look).await;
    let found = eventually(&cluster, &["logs", "looks"]).await;
    assert!(found.starts_with(&address.to_string()), "{found}");
    let said = cluster.run(&["logs", "deployment/letters"]).await;
    assert_eq!((said.out.as_str(), said.code), ("listening\n", 0), "{said:?}");
    let gone = cluster.run(&["delete", "deployment,service", "letters", "--timeout=60s"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
}
