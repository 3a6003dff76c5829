//! `kubectl attach`

use std::process::Stdio;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::cluster::{Cluster, SHELL};
use crate::exec::WEB_SOCKETS;

crate::trials![a_visitor_comes_and_goes, the_only_visitor_ends_the_input];

async fn a_visitor_comes_and_goes(cluster: Arc<Cluster>) {
    let command = ["/bin/sh", "-c", "while read line; do echo \"heard $line\"; done"];
    cluster.pod("listens", json!([{"name": "main", "image": SHELL, "command": command, "stdin": true}])).await;
    cluster.settled("listens").await;
    for (word, web_sockets) in [("one", "true"), ("two", "false")] {
        let mut visitor = cluster.kubectl(&["attach", "-i", "listens"]);
        let mut visitor = visitor.env(WEB_SOCKETS, web_sockets).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = visitor.stdin.take().unwrap();
        stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(visitor.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().unwrap(), format!("heard {word}"));
        visitor.kill().await.unwrap();
    }
    let log = cluster.run(&["logs", "listens"]).await;
    assert_eq!(log.out, "heard one\nheard two\n");
}

async fn the_only_visitor_ends_the_input(cluster: Arc<Cluster>) {
    let container = json!([{"name": "main", "image": SHELL, "command": ["/bin/sh", "-c", "cat; echo end"],
        "stdin": true, "stdinOnce": true}]);
    cluster.pod("once", container).await;
    cluster.settled("once").await;
    let mut visitor = cluster.kubectl(&["attach", "-i", "once"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = visitor.stdin.take().unwrap();
    stdin.write_all(b"all of it\n").await.unwrap();
    drop(stdin);
    let output = visitor.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all of it\nend\n");
    assert!(output.status.success());
}
