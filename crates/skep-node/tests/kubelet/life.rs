//! The smaller promises of a kubelet, each kept on both API servers.

use std::process::Stdio;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::cluster::{Cluster, Kind, SHELL};
use crate::look::{STAY, field, script, told, until, with};

crate::trials![
    last_words_are_kept,
    hooks_run_at_both_ends,
    nothing_is_probed_before_the_start_is_over,
    a_deadline_ends_the_pod,
    names_of_its_own,
    an_image_that_is_never_pulled,
    the_run_before_is_remembered,
    the_network_of_the_node,
    a_probe_that_cannot_be_made_says_so,
    reasons_that_are_over_are_taken_back,
];

/// Our API server does not take containers that are added later.
pub fn real_trials() -> Vec<libtest_mimic::Trial> {
    vec![crate::trial(Kind::Real, "life::somebody_looks_around", somebody_looks_around)]
}

async fn last_words_are_kept(cluster: Arc<Cluster>) {
    let own_path = with(script("printf farewell > /tmp/why; exit 3"), &json!({"terminationMessagePath": "/tmp/why"}));
    cluster.pod("leaves-word", json!([own_path])).await;
    let from_log = json!({"terminationMessagePolicy": "FallbackToLogsOnError"});
    cluster.pod("prints-word", json!([with(script("echo in the log; exit 4"), &from_log)])).await;
    for (pod, words) in [("leaves-word", "farewell"), ("prints-word", "in the log")] {
        until(&cluster, pod, "{.status.phase}", "Failed").await;
        let path = "{.status.containerStatuses[0].state.terminated.message}";
        assert_eq!(field(&cluster, pod, path).await.trim(), words);
    }
}

async fn hooks_run_at_both_ends(cluster: Arc<Cluster>) {
    let hook = |text: &str| json!({"exec": {"command": ["/bin/sh", "-c", text]}});
    let lifecycle = json!({"lifecycle": {"postStart": hook("echo begun > /v/begun"), "preStop": hook("echo over > /v/over")},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let last = "trap 'cat /v/begun /v/over; exit 0' TERM; echo here; while :; do sleep 0.1; done";
    let more = json!({"volumes": [{"name": "v", "emptyDir": {}}], "terminationGracePeriodSeconds": 30});
    cluster.pod_with("hooked", json!([with(script(last), &lifecycle)]), more).await;
    until(&cluster, "hooked", "{.status.phase}", "Running").await;
    let mut log = cluster.kubectl(&["logs", "-f", "hooked"]).spawn().unwrap();
    let mut lines = BufReader::new(log.stdout.take().unwrap()).lines();
    // Whoever comes after the end hears nothing.
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("here"));
    let gone = cluster.run(&["delete", "pod", "hooked", "--timeout=60s"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    let mut words = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        words.push(line);
    }
    // The shell tells of its sleep, which was asked to end as well.
    words.retain(|word| word != "Terminated");
    assert_eq!(words, ["begun", "over"]);
}

async fn nothing_is_probed_before_the_start_is_over(cluster: Arc<Cluster>) {
    let probe =
        |text: &str| json!({"exec": {"command": ["/bin/sh", "-c", text]}, "periodSeconds": 1, "failureThreshold": 1});
    let start = json!({"exec": {"command": ["test", "-e", "/v/up"]}, "periodSeconds": 1, "failureThreshold": 120});
    // A probe for life that came too early would be noted, and end the container.
    let probes = json!({"startupProbe": start, "livenessProbe": probe("test -e /v/up || touch /v/early"),
        "readinessProbe": probe("true"), "volumeMounts": [{"name": "v", "mountPath": "/v"}]});
    let more = json!({"volumes": [{"name": "v", "emptyDir": {}}]});
    cluster.pod_with("slow", json!([with(script(STAY), &probes)]), more).await;
    told(&cluster, "slow", "Startup probe failed").await;
    assert_eq!(field(&cluster, "slow", "{.status.containerStatuses[0].ready}").await, "false");
    let said = cluster.run(&["exec", "slow", "--", "touch", "/v/up"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    until(&cluster, "slow", "{.status.containerStatuses[0].ready}", "true").await;
    assert_ne!(cluster.run(&["exec", "slow", "--", "test", "-e", "/v/early"]).await.code, 0);
}

async fn a_deadline_ends_the_pod(cluster: Arc<Cluster>) {
    cluster.pod_with("hurried", json!([script(STAY)]), json!({"activeDeadlineSeconds": 1})).await;
    until(&cluster, "hurried", "{.status.reason}", "DeadlineExceeded").await;
    assert_eq!(field(&cluster, "hurried", "{.status.phase}").await, "Failed");
}

async fn names_of_its_own(cluster: Arc<Cluster>) {
    let more = json!({"hostAliases": [{"ip": "192.0.2.9", "hostnames": ["far", "away"]}], "hostname": "herself"});
    cluster.pod_with("aliases", json!([script("cat /etc/hosts; hostname")]), more).await;
    until(&cluster, "aliases", "{.status.phase}", "Succeeded").await;
    let text = cluster.run(&["logs", "aliases"]).await.out;
    assert!(text.contains("192.0.2.9\tfar\taway\n") && text.ends_with("\nherself\n"), "{text}");
}

async fn an_image_that_is_never_pulled(cluster: Arc<Cluster>) {
    let container = json!({"name": "main", "image": "npx://never-pulled@1.0.0", "imagePullPolicy": "Never"});
    cluster.pod("never", json!([container])).await;
    until(&cluster, "never", "{.status.containerStatuses[0].state.waiting.reason}", "ErrImageNeverPull").await;
}

async fn the_run_before_is_remembered(cluster: Arc<Cluster>) {
    let container = with(
        script(
            "if [ -e /v/again ]; then echo second; while :; do sleep 0.2; done; fi; touch /v/again; echo first; exit 1",
        ),
        &json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
    );
    let more = json!({"restartPolicy": "Always", "volumes": [{"name": "v", "emptyDir": {}}]});
    cluster.pod_with("twice", json!([container]), more).await;
    until(&cluster, "twice", "{.status.containerStatuses[0].restartCount}", "1").await;
    assert_eq!(cluster.run(&["logs", "--previous", "twice"]).await.out, "first\n");
    while cluster.run(&["logs", "twice"]).await.out != "second\n" {}
}

async fn the_network_of_the_node(cluster: Arc<Cluster>) {
    let look = script("[ -e /proc/sys/net/ipv4/conf/skep0 ] && echo the bridge");
    cluster.pod_with("of-node", json!([look]), json!({"hostNetwork": true})).await;
    until(&cluster, "of-node", "{.status.phase}", "Succeeded").await;
    assert_eq!(cluster.run(&["logs", "of-node"]).await.out, "the bridge\n");
    let both = field(&cluster, "of-node", "{.status.podIP} {.status.hostIP}").await;
    let (own, of_node) = both.split_once(' ').unwrap();
    assert_eq!(own, of_node);
}

async fn a_probe_that_cannot_be_made_says_so(cluster: Arc<Cluster>) {
    let probe = json!({"readinessProbe": {"grpc": {"port": 1}, "periodSeconds": 1}});
    cluster.pod("grpc", json!([with(script(STAY), &probe)])).await;
    let line = told(&cluster, "grpc", "Unhealthy").await;
    assert!(line.contains("gRPC probes are not supported by this node"), "{line}");
}

async fn reasons_that_are_over_are_taken_back(cluster: Arc<Cluster>) {
    cluster.pod("gets-ready", json!([script(STAY)])).await;
    until(&cluster, "gets-ready", "{.status.conditions[?(@.type=='Ready')].status}", "True").await;
    let path = "{.status.conditions[?(@.type=='Ready')].reason}{.status.conditions[?(@.type=='Ready')].message}";
    assert_eq!(field(&cluster, "gets-ready", path).await, "");
}

async fn somebody_looks_around(cluster: Arc<Cluster>) {
    cluster.pod("looked-at", json!([script(STAY)])).await;
    until(&cluster, "looked-at", "{.status.phase}", "Running").await;
    let arguments = ["debug", "looked-at", "-i", "--quiet", "--image", SHELL, "-c", "guest", "--", "sh", "-c"];
    let look = "read word; echo \"$word from $(hostname)\"";
    let mut guest = cluster.kubectl(&[&arguments[..], &[look]].concat()).stdin(Stdio::piped()).spawn().unwrap();
    guest.stdin.take().unwrap().write_all(b"greetings\n").await.unwrap();
    until(&cluster, "looked-at", "{.status.ephemeralContainerStatuses[0].state.terminated.exitCode}", "0").await;
    let log = cluster.run(&["logs", "looked-at", "-c", "guest"]).await;
    assert_eq!(log.out, "greetings from looked-at\n", "{log:?}");
    assert_eq!(field(&cluster, "looked-at", "{.status.phase}").await, "Running");
}
