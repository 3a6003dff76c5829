//! Without namespaces: what works all the same, and what is told not to.

use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use super::life::{nothing_is_left, start_marked};
use super::machine::{LIMIT, Machine, eventually};
use super::mcp::{call_tool, until_served};
use super::servers;
use super::start::Start;
use skep_conformance::ports::free_port;

/// Without namespaces the pods of all machines have the same addresses on the loopback: one at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What a hardened machine does: no further user namespaces.
const HARDENED: [&str; 6] = [
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"",
];

/// Two demo servers, on one port each, behind one service; its address on this machine.
async fn serve_echo(machine: &Machine) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deployment.yaml");
    let port = free_port().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let text =
        text.replace("port: 8080, target", &format!("port: {port}, target")).replace("replicas: 1", "replicas: 2");
    let text = text.replace("type: LoadBalancer", "type: LoadBalancer\n  sessionAffinity: ClientIP");
    machine.apply(&text).await;
    let address = format!("127.0.0.1:{port}");
    eventually("both servers are ready", || async {
        let pods = machine.pods().list(&kube::api::ListParams::default().labels("app=plain-echo")).await.unwrap();
        let statuses = pods.items.into_iter().map(|pod| serde_json::to_value(pod.status).unwrap());
        let ready = statuses.filter(|status| status["containerStatuses"][0]["ready"] == true).count();
        let open = TcpStream::connect(&address).map(drop);
        if ready == 2 && open.is_ok() { Ok(()) } else { Err(format!("{ready} are ready, {open:?}")) }
    })
    .await;
    address
}

fn is_refused(status: &Value) -> bool {
    status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CreateContainerConfigError"
}

fn shell(script: &str) -> Value {
    json!({"name": "main", "image": "shell", "imagePullPolicy": "IfNotPresent", "args": [script]})
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_most_things_work_and_the_rest_is_told() {
    let _alone = ALONE.lock().await;
    let machine = Start::new().isolation(Some("none")).now().await;
    let address = serve_echo(&machine).await;
    for _ in 0..4 {
        assert_eq!(call_tool(&address, "echo", &json!({"message": "hi"}))["content"][0]["text"], "hi");
    }
    own_programs_find_their_volumes(&machine).await;
    volumes_of_others_are_refused(&machine).await;
    a_port_that_is_taken_is_refused(&machine).await;
    machine.signal("-TERM");
    let (code, folder) = machine.ended().await;
    assert_eq!(code, Some(0));
    assert_eq!(skep_conformance::processes::marked(&folder.path().display().to_string()), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_mcp_servers_are_served() {
    let _alone = ALONE.lock().await;
    let machine = Start::new().isolation(Some("none")).now().await;
    machine.until_installed().await;
    let lines = servers::serve(&machine, "lines", json!({"transport": "stdio"})).await;
    let streamable = servers::serve(&machine, "streamable", json!({"transport": "streamable-http"})).await;
    for address in [lines, streamable] {
        until_served(LIMIT, &address, || machine.said()).await;
        assert!(servers::adds(&address), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_a_kill_leaves_nothing_behind() {
    let _alone = ALONE.lock().await;
    let machine = Start::new().isolation(Some("none")).now().await;
    let mark = format!("skep-test-plain-kill-{}", machine.process());
    start_marked(&machine, &mark).await;
    machine.signal("-KILL");
    machine.ended().await;
    nothing_is_left(&mark).await;
}

async fn own_programs_find_their_volumes(machine: &Machine) {
    machine.config("settings", json!({"colour": "red"})).await;
    let script = "echo it is $(cat $SKEP_VOLUME_ROOT/etc/settings/colour); sleep 1000";
    let container = json!({"name": "main", "image": "skep", "command": ["/bin/sh", "-c", script],
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/settings"}]});
    let volumes = json!([{"name": "settings", "configMap": {"name": "settings"}}]);
    machine.pod("own", json!({"containers": [container], "volumes": volumes})).await;
    machine.until_printed("own", "it is red").await;
}

async fn volumes_of_others_are_refused(machine: &Machine) {
    let mut container = shell("sleep 1000");
    container["volumeMounts"] = json!([{"name": "scratch", "mountPath": "/scratch"}]);
    let volumes = json!([{"name": "scratch", "emptyDir": {}}]);
    machine.pod("wants-volume", json!({"containers": [container], "volumes": volumes})).await;
    let status = machine.until("wants-volume", "is refused", is_refused).await;
    let told = status["containerStatuses"][0]["state"]["waiting"]["message"].as_str().unwrap();
    assert!(told.starts_with("/scratch cannot be mounted") && told.contains("hint:"), "{told}");
}

async fn a_port_that_is_taken_is_refused(machine: &Machine) {
    let port = free_port().unwrap();
    let mut container = shell(&format!("exec python3 -m http.server {port}"));
    container["ports"] = json!([{"containerPort": port}]);
    machine.pod("first", json!({"containers": [container.clone()]})).await;
    eventually("the first listens", || async {
        TcpStream::connect(("127.0.0.1", port)).map(drop).map_err(|error| error.to_string())
    })
    .await;
    machine.pod("second", json!({"containers": [container]})).await;
    let status = machine.until("second", "is refused", is_refused).await;
    let told = status["containerStatuses"][0]["state"]["waiting"]["message"].as_str().unwrap();
    assert!(told.starts_with(&format!("port {port} is in use on this machine")) && told.contains("hint:"), "{told}");
    let first = machine.until("first", "still runs", |status| status["phase"] == "Running").await;
    assert_eq!(first["containerStatuses"][0]["restartCount"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_kernel_refuses_namespaces_it_says_so_and_goes_on() {
    let _alone = ALONE.lock().await;
    let hardens = std::process::Command::new(HARDENED[0]).args(&HARDENED[1..]).arg("true").output();
    if !hardens.is_ok_and(|output| output.status.success()) {
        let reason = "this machine makes no user namespace that could refuse others";
        return skep_conformance::skip::skip("where_the_kernel_refuses_namespaces_it_says_so_and_goes_on", reason);
    }
    let machine = Start::new().isolation(None).through(&HARDENED).now().await;
    let address = serve_echo(&machine).await;
    assert_eq!(call_tool(&address, "add", &json!({"a": 2, "b": 3}))["structuredContent"]["sum"], 5);
    let said = machine.said();
    let words = [
        "warning: the kernel refuses to make namespaces",
        "hint: sudo sysctl -w user.max_user_namespaces=",
        "going on with --isolation=none",
    ];
    for word in words {
        assert!(said.contains(word), "{word:?} is not in\n{said}");
    }
    machine.signal("-TERM");
    assert_eq!(machine.ended().await.0, Some(0));
}
