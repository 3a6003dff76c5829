//! `kubectl logs`

use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::cluster::{Cluster, SHELL};

crate::trials![what_was_printed, as_it_is_printed, what_there_is_not];

async fn what_was_printed(cluster: Arc<Cluster>) {
    cluster.script("printed", "echo one; echo two >&2; echo three").await;
    let all = cluster.run(&["logs", "-f", "printed"]).await;
    let mut lines: Vec<&str> = all.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one", "three", "two"], "{all:?}");
    let last = cluster.run(&["logs", "printed", "--tail=1"]).await;
    assert_eq!(last.out.lines().count(), 1, "{last:?}");
    let stamped = cluster.run(&["logs", "printed", "--tail=1", "--timestamps"]).await;
    let (time, line) = stamped.out.split_once(' ').unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z') && last.out == line, "{stamped:?}");
    assert_eq!(cluster.run(&["logs", "printed", "--limit-bytes=2"]).await.out.len(), 2);
    assert_eq!(cluster.run(&["logs", "printed", "--since=1h"]).await.out.lines().count(), 3);
    assert_eq!(cluster.run(&["logs", "printed", "--since-time=2100-01-01T00:00:00Z"]).await.out, "");
}

async fn as_it_is_printed(cluster: Arc<Cluster>) {
    cluster.script("growing", "echo one; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo two").await;
    let mut follow = cluster.kubectl(&["logs", "-f", "growing"]).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "one");
    let said = cluster.run(&["exec", "growing", "--", "touch", "/tmp/go"]).await;
    // What it does ends the container, and with that all that runs in it: it may be killed before it has ended itself.
    assert!([0, 137].contains(&said.code), "{said:?}");
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "two");
    assert_eq!(lines.next_line().await.unwrap(), None, "a log ends with its container");
    assert!(follow.wait().await.unwrap().success());
}

async fn what_there_is_not(cluster: Arc<Cluster>) {
    cluster.script("quiet", "true").await;
    let said = cluster.run(&["logs", "quiet", "--previous"]).await;
    let text = "Error from server (BadRequest): previous terminated container \"main\" in pod \"quiet\" not found\n";
    assert_eq!((said.err.as_str(), said.code), (text, 1));
    let said = cluster.run(&["logs", "quiet", "-c", "other"]).await;
    assert!(said.err.contains("container other is not valid for pod quiet"), "{said:?}");
    cluster.pod("two", json!([{"name": "a", "image": "nowhere"}, {"name": "b", "image": SHELL}])).await;
    let mut said = cluster.run(&["logs", "two", "-c", "a"]).await;
    while said.err.contains("ContainerCreating")
        || said.err.contains("is not available")
        || said.err.contains("( pods/log")
    {
        said = cluster.run(&["logs", "two", "-c", "a"]).await;
    }
    let waits = "container \"a\" in pod \"two\" is waiting to start: ";
    assert!(said.err.contains(waits) && said.err.contains("pull"), "{said:?}");
}
