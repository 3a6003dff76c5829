//! `skep operator` as a cluster meets it: what it answers to probes, what it says while it cannot work, and how it ends.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::Value;
use skep_api::names::operator;
use skep_conformance::definitions;
use snapbox::cmd::cargo_bin;

/// Longer than any of this takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// Ends with the test, whatever becomes of it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn skep(arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("skep"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// An API server with nothing in it, and where its kubeconfig is.
fn api_server(folder: &Path) -> (Process, String) {
    let mut command = skep(&["api-server", "--data-dir", "data", "--listen", "127.0.0.1:0"]);
    let mut child = command.current_dir(folder).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let (_, path) = line.trim_end().split_once("KUBECONFIG=").unwrap();
    (Process(child), path.trim_matches(['\'', '"']).to_owned())
}

/// An address that nobody listens on.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The status and the text of an answer; nothing while nobody answers.
fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, text) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, text.to_owned()))
}

/// Asks again and again until there is an answer.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "there never was {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn client(kubeconfig: &str) -> Client {
    let document = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(document, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn probes_tell_whether_it_works_and_a_signal_ends_it_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, kubeconfig) = api_server(folder.path());
    let client = client(&kubeconfig).await;
    let (metrics, health) = (free_address(), free_address());
    let log = folder.path().join("operator.log");
    let mut command = skep(&["operator", "--leader-elect", "--kubeconfig", &kubeconfig]);
    command.args(["--metrics-bind-address", &metrics.to_string(), "--health-probe-bind-address", &health.to_string()]);
    command.env("POD_NAMESPACE", "default").stderr(File::create(&log).unwrap());
    let mut process = Process(command.spawn().unwrap());

    // The kinds that it looks after are not there: it lives, it leads, it is not ready, and it says why.
    let said = |word: &str| fs::read_to_string(&log).unwrap_or_default().contains(word).then_some(());
    until("a sign of life", || get(health, "/healthz").filter(|(status, _)| *status == 200));
    let refused = until("trouble", || get(health, "/readyz").filter(|(status, _)| *status == 503));
    assert_eq!(refused.1, "not everything that is watched is known yet");
    until("a word about a kind", || said("/apis/toolhive.stacklok.dev/v1beta1/mcpservers"));
    until("a word about all of them", || said("MCPServer, "));
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    let holder = async || leases.get(operator::LEADER_ELECTION_ID).await.unwrap().spec.unwrap().holder_identity;
    assert!(holder().await.is_some_and(|holder| !holder.is_empty()));

    definitions::install(&client, |document| document).await.unwrap();
    until("readiness", || get(health, "/readyz").filter(|(status, _)| *status == 200));
    let (status, text) = get(metrics, "/metrics").unwrap();
    assert_eq!(status, 200);
    for name in ["skep_operator_reconcile_total", "skep_operator_queue_depth", "skep_operator_api_requests_total"] {
        assert!(text.contains(name), "{name}: {text}");
    }

    // The next replica need not wait.
    let sent = Command::new("kill").args(["-TERM", &process.0.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ended = until("an end", || process.0.try_wait().unwrap());
    assert!(ended.success(), "{}", fs::read_to_string(&log).unwrap());
    assert_eq!(holder().await.unwrap_or_default(), "");
}

#[test]
fn the_error_that_ends_it_is_a_line_of_its_log() {
    let mut command = skep(&["operator", "--kubeconfig", "/nowhere/kubeconfig"]);
    let output = command.env("UNSTRUCTURED_LOGS", "false").env_remove("RUST_LOG").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!(last["level"], "ERROR");
    let told = last["msg"].as_str().unwrap();
    assert!(told.contains("/nowhere/kubeconfig") && told.contains("\nhint: "), "{told}");
}
