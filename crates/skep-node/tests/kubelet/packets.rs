//! Services over UDP.

use std::net::{IpAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use skep_node::broker::HostCommand;
use tokio::io::AsyncReadExt as _;

use crate::cluster::{Cluster, SELF, broker};

crate::trials![packets_find_their_way_back];

/// The first argument of this program when it is to answer packets, and when it is to send one.
pub const SERVER: &str = "answer-packets";
pub const CLIENT: &str = "send-packet";
const PORT: u16 = 5353;

/// Gives back every packet in capitals.
pub fn serve() -> ExitCode {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).unwrap();
    let mut buffer = vec![0; 65_535];
    loop {
        let (length, client) = socket.recv_from(&mut buffer).unwrap();
        buffer[..length].make_ascii_uppercase();
        socket.send_to(&buffer[..length], client).unwrap();
    }
}

/// Sends a packet to where the second argument says until there is an answer, and prints that.
pub fn ask() -> ExitCode {
    let address = std::env::args().nth(2).unwrap();
    let mut buffer = vec![0; 65_535];
    loop {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket.connect(&address).unwrap();
        // A port that is not open yet refuses.
        if socket.send(b"hello").is_ok()
            && let Ok(length) = socket.recv(&mut buffer)
        {
            print!("{}", String::from_utf8_lossy(&buffer[..length]));
            return ExitCode::SUCCESS;
        }
    }
}

async fn packets_find_their_way_back(cluster: Arc<Cluster>) {
    let labels = json!({"app": "packets"});
    let container = json!({"name": "main", "image": SELF, "args": [SERVER], "ports": [
        {"containerPort": PORT, "protocol": "UDP"}]});
    cluster.labelled_pod("packets", &labels, json!([container])).await;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "packets"}, "spec": {
            "type": "NodePort", "selector": labels, "ports": [{"port": 53, "targetPort": PORT, "protocol": "UDP"}]}}))
        .await;
    let of_service = async |path: &str| {
        let path = format!("jsonpath={path}");
        cluster.run(&["get", "service", "packets", "-o", &path]).await.out
    };
    let address: IpAddr = of_service("{.spec.clusterIP}").await.parse().unwrap();
    let ask = |to: &str| json!([{"name": "main", "image": SELF, "args": [CLIENT, to]}]);
    cluster.pod("asks", ask(&format!("{address}:53"))).await;
    let waited = cluster.run(&["wait", "pod/asks", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"]).await;
    assert_eq!(waited.code, 0, "{waited:?}");
    assert_eq!(cluster.run(&["logs", "asks"]).await.out, "HELLO");

    let node_port = of_service("{.spec.ports[0].nodePort}").await;
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let argv = vec![program, CLIENT.to_owned(), format!("127.0.0.1:{node_port}")];
    let mut outside = broker().run(&HostCommand { argv, ..HostCommand::default() }).await.unwrap();
    let mut text = String::new();
    outside.take_stdout().unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "HELLO");
}
