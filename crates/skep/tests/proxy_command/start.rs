//! A proxy in a pod while it has nothing to serve yet: it answers at once, and stops when it is asked to.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::http::Request;
use super::{LIMIT, Serving};

/// An API server, or what there is in its place.
#[derive(Clone, Copy)]
enum Cluster {
    /// It takes connections and says nothing.
    Silent,
    /// It takes what it is given, and no pod ever runs.
    Idle,
    /// The same, and it says that pods run.
    Lying,
}

/// Starts it, and gives its address.
fn cluster(kind: Cluster) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let objects: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let objects = Arc::clone(&objects);
            std::thread::spawn(move || match kind {
                // Until the other side has had enough.
                Cluster::Silent => drop(std::io::copy(&mut &stream, &mut std::io::sink())),
                Cluster::Idle | Cluster::Lying => while serve(kind, &stream, &objects).is_some() {},
            });
        }
    });
    address
}

/// Answers one request. Nothing when the connection has ended.
fn serve(kind: Cluster, mut stream: &TcpStream, objects: &Mutex<HashMap<String, Value>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header == "\r\n" {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    if query.contains("watch=") {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
            .ok()?;
        return std::io::copy(&mut stream, &mut std::io::sink()).ok().map(drop);
    }
    let mut objects = objects.lock().unwrap();
    let mut object: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, answer) = if method == "GET" {
        let within: Vec<&Value> = objects
            .iter()
            .filter(|(known, _)| known.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
            .map(|(_, object)| object)
            .collect();
        match objects.get(path) {
            Some(object) => (200, object.clone()),
            None if path.ends_with('s') => (
                200,
                json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": within}),
            ),
            None => (
                404,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}),
            ),
        }
    } else {
        for (name, value) in [("uid", json!("u")), ("resourceVersion", json!("1")), ("generation", json!(1))] {
            object["metadata"][name] = value;
        }
        if matches!(kind, Cluster::Lying) && object["kind"] == "StatefulSet" {
            object["status"] =
                json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1});
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let place = if path.ends_with(&format!("/{name}")) { path.to_owned() } else { format!("{path}/{name}") };
        objects.insert(place, object.clone());
        (201, object)
    };
    let answer = answer.to_string();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", answer.len());
    stream.write_all(format!("{head}{answer}").as_bytes()).ok()
}

/// A proxy in a pod of such a cluster. It tells what it notices in the file `log` of the folder.
fn proxy(folder: &TempDir, cluster: &str, transport: &str) -> Serving {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = json!({"name": "n", "image": "i", "host": "127.0.0.1", "port": port, "target_port": 8080, "transport": transport});
    std::fs::write(folder.path().join("runconfig.json"), config.to_string()).unwrap();
    let named = |name: &str, rest: Value| {
        let mut one = json!({"name": "c"});
        one[name] = rest;
        json!([one])
    };
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": named("cluster", json!({"server": format!("http://{cluster}")})),
        "users": named("user", json!({})), "contexts": named("context", json!({"cluster": "c", "user": "c"}))});
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let mut command = Command::new(cargo_bin!("skep"));
    let log = File::create(folder.path().join("log")).unwrap();
    command.args(["run", "--foreground=true", "i"]).current_dir(folder.path()).stdin(Stdio::null()).stderr(log);
    command
        .env("SKEP_ATTACH_TIMEOUT", "300ms")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("TOOLHIVE_RUNTIME", "kubernetes")
        .env("KUBECONFIG", path);
    Serving { child: command.spawn().unwrap(), address: format!("127.0.0.1:{port}"), said: Arc::default() }
}

#[test]
fn trap_62_a_proxy_that_still_waits_answers_and_stops_when_it_is_asked_to() {
    for kind in [Cluster::Silent, Cluster::Idle] {
        for transport in ["stdio", "streamable-http"] {
            let (folder, cluster) = (TempDir::new().unwrap(), cluster(kind));
            let mut proxy = proxy(&folder, &cluster, transport);
            let begun = Instant::now();
            while TcpStream::connect(&proxy.address).is_err() {
                assert!(begun.elapsed() < LIMIT && proxy.child.try_wait().unwrap().is_none(), "it never listens");
                std::thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(Request::new("GET", "/health").send(&proxy.address).status, 200);
            let hello = super::message(1, "initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
            let early = Request::post(&hello).send(&proxy.address);
            assert_eq!((early.status, early.header("retry-after")), (503, Some("1")));
            proxy.signal("-TERM");
            assert_eq!(proxy.end(), Some(0));
            assert!(TcpStream::connect(&proxy.address).is_err(), "the port is still open");
        }
    }
}

#[test]
fn without_a_pod_to_attach_to_it_ends_with_one_after_a_while() {
    let (folder, cluster) = (TempDir::new().unwrap(), cluster(Cluster::Lying));
    assert_eq!(proxy(&folder, &cluster, "stdio").end(), Some(1));
    let said = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(said.contains("none of its 0 pods runs a process to attach to"), "{said}");
}
