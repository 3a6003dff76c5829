//! `kubectl port-forward`

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

use crate::cluster::{Cluster, SELF};

crate::trials![connections_side_by_side, a_port_that_nobody_listens_on, without_web_sockets];

/// The first argument of this program when it is to listen: on the loopback of its pod, or where the second one says.
pub const SERVER: &str = "serve-letters";
pub const PORT: u16 = 8080;

/// Gives back what it gets, in capitals, to the end of each connection.
pub fn serve() -> ExitCode {
    let host = std::env::args().nth(2).unwrap_or_else(|| "127.0.0.1".to_owned());
    let listener = TcpListener::bind((host, PORT)).unwrap();
    println!("listening");
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(length @ 1..) = connection.read(&mut buffer) {
                buffer[..length].make_ascii_uppercase();
                if connection.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
        });
    }
    ExitCode::SUCCESS
}

async fn server(cluster: &Cluster, name: &str) {
    cluster.pod(name, json!([{"name": "main", "image": SELF, "args": [SERVER]}])).await;
    cluster.settled(name).await;
    while cluster.run(&["logs", name]).await.out != "listening\n" {}
}

/// kubectl, and the port of this machine that it listens on.
async fn forward(mut command: tokio::process::Command) -> (Child, u16) {
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let port = line.strip_prefix("Forwarding from 127.0.0.1:").and_then(|rest| rest.split(' ').next()).unwrap();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, port.parse().unwrap())
}

async fn speak(port: u16, text: Vec<u8>) -> Vec<u8> {
    let (mut source, mut sink) = TcpStream::connect(("127.0.0.1", port)).await.unwrap().into_split();
    let writing = tokio::spawn(async move {
        sink.write_all(&text).await.unwrap();
        sink.shutdown().await.unwrap();
    });
    let mut answer = Vec::new();
    source.read_to_end(&mut answer).await.unwrap();
    writing.await.unwrap();
    answer
}

async fn connections_side_by_side(cluster: Arc<Cluster>) {
    server(&cluster, "letters").await;
    let (_child, port) = forward(cluster.kubectl(&["port-forward", "letters", ":8080"])).await;
    let (mut quiet_source, mut quiet_sink) = TcpStream::connect(("127.0.0.1", port)).await.unwrap().into_split();
    quiet_sink.write_all(b"first ").await.unwrap();
    let large = vec![b'a'; 3_000_000];
    assert!(speak(port, large).await == vec![b'A'; 3_000_000], "all of it, in capitals");
    for _ in 0..5 {
        assert_eq!(speak(port, b"bee".to_vec()).await, b"BEE");
    }
    quiet_sink.write_all(b"last").await.unwrap();
    quiet_sink.shutdown().await.unwrap();
    let mut text = String::new();
    quiet_source.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "FIRST LAST");
}

async fn a_port_that_nobody_listens_on(cluster: Arc<Cluster>) {
    server(&cluster, "closed").await;
    let (mut child, port) = forward(cluster.kubectl(&["port-forward", "closed", ":9"])).await;
    assert_eq!(speak(port, Vec::new()).await, b"");
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut text = String::new();
    while !text.contains("error forwarding port 9 to pod closed") {
        text = errors.next_line().await.unwrap().unwrap();
    }
    assert!(text.to_lowercase().contains("connection refused"), "{text}");
}

async fn without_web_sockets(cluster: Arc<Cluster>) {
    server(&cluster, "plain").await;
    let mut command = cluster.kubectl(&["port-forward", "plain", ":8080"]);
    command.env("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false");
    let (_child, port) = forward(command).await;
    assert_eq!(speak(port, b"plain".to_vec()).await, b"PLAIN");
}
