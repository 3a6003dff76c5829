//! `skep proxy run` from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../asking/mod.rs"]
mod asking;
mod bearer_token;
mod by_hand;
mod eras;
#[path = "../demo/http.rs"]
#[expect(dead_code, reason = "the tests of the demo server need more of it")]
mod http;
mod limits;
mod logged;
mod lost;
mod processes;
mod sessions;
mod start;
mod stopping;
mod tls;
mod unreached;
mod unstartable;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{Request, Response};
use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

/// Far more than it takes, for machines that are busy building.
const LIMIT: Duration = Duration::from_mins(2);

/// A command that serves at an address. Dropping it kills it.
struct Serving {
    child: Child,
    address: String,
    /// What it has said since then, if that is heard.
    said: Arc<Mutex<String>>,
}

impl Serving {
    /// Starts a command of skep and waits until it says where it serves.
    fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, &[])
    }

    /// The same with these variables.
    fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(cargo_bin!("skep"));
        command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.starts_with("serving http")).unwrap();
        let address = line.split_once("://").unwrap().1.split('/').next().unwrap().to_owned();
        // Whoever writes must not be stopped by nobody reading.
        let said = Arc::<Mutex<String>>::default();
        let heard = Arc::clone(&said);
        std::thread::spawn(move || lines.for_each(|line| *heard.lock().unwrap() += &(line + "\n")));
        Self { child, address, said }
    }

    /// Waits until it has said this, and gives all that it has said.
    fn await_words(&self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = self.said.lock().unwrap().clone();
            if said.contains(words) {
                return said;
            }
            assert!(begun.elapsed() < LIMIT, "it does not say {words:?}: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    fn end(&mut self) -> Option<i32> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(begun.elapsed() < LIMIT, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What a tool answers, once the server is there.
    fn call(&self, name: &str, arguments: &Value) -> Value {
        let mut response = self.call_in(&self.session(), name, arguments);
        assert_eq!(response.status, 200);
        let answer = if response.is_stream() { response.message().unwrap() } else { response.json() };
        answer["result"].clone()
    }

    /// A session of a client that can be asked, once the server is there.
    fn session(&self) -> String {
        let client = json!({"name": "test", "version": "1"});
        let capabilities = json!({"sampling": {}, "elicitation": {}});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client});
        let begun = Instant::now();
        loop {
            let mut response = Request::post(&message(1, "initialize", &hello)).send(&self.address);
            if response.status == 200 {
                return response.header("mcp-session-id").unwrap().to_owned();
            }
            assert_eq!((response.status, response.header("retry-after").is_some()), (503, true), "{}", response.text());
            assert!(begun.elapsed() < LIMIT, "it is never ready");
        }
    }

    /// Calls a tool in a session.
    fn call_in(&self, session: &str, name: &str, arguments: &Value) -> Response {
        self.tell_in(session, &message(2, "tools/call", &json!({"name": name, "arguments": arguments})))
    }

    fn tell_in(&self, session: &str, message: &Value) -> Response {
        let post = Request::post(message).header("Mcp-Session-Id", session);
        post.header("MCP-Protocol-Version", "2025-06-18").send(&self.address)
    }
}

fn message(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ANY: [&str; 4] = ["proxy", "run", "--listen", "127.0.0.1:0"];

#[test]
fn a_server_at_a_url_and_a_command_are_served() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let lines = Serving::start(&[&ANY[..], &["--", skep, "demo", "echo", "--transport", "stdio"]].concat());
    assert_eq!(lines.call("add", &json!({"a": 2, "b": 3}))["structuredContent"]["sum"], 5);
    let url = format!("http://{}/mcp", lines.address);
    let remote = Serving::start(&[&ANY[..], &["--url", &url]].concat());
    assert_eq!(remote.call("echo", &json!({"message": "hi"}))["content"][0]["text"], "hi");
    let mut health = Request::new("GET", "/health").send(&remote.address);
    assert_eq!((health.status, health.json()["status"].clone()), (200, json!("healthy")));
}

#[test]
fn every_way_to_ask_it_to_stop_is_heard() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    for signal in ["-TERM", "-INT", "-QUIT"] {
        let mut proxy = Serving::start(&[&ANY[..], &["--transport", "sse", "--", skep, "demo", "echo"]].concat());
        proxy.signal(signal);
        assert_eq!(proxy.end(), Some(0), "{signal}");
        assert!(TcpStream::connect(&proxy.address).is_err(), "the port is still open");
    }
}

#[test]
fn an_answer_is_awaited_for_as_long_as_somebody_says() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let command = ["--", skep, "demo", "echo", "--transport", "stdio"];
    let variable = |value| [("TOOLHIVE_PROXY_REQUEST_TIMEOUT", value)];
    for (flags, variables) in [(&[][..], variable("1s")), (&["--request-timeout", "1s"], variable("5m"))] {
        let proxy = Serving::start_with(&[&ANY[..], flags, &command].concat(), &variables);
        let mut late = proxy.call_in(&proxy.session(), "slow", &json!({"seconds": 60}));
        let told = late.message().unwrap();
        let expected = json!("Timeout: the MCP server has not answered within 1s");
        assert_eq!((&told["id"], &told["error"]["message"]), (&json!(2), &expected), "{flags:?}");
    }
    for (flags, told) in [
        (&["--request-timeout", "soon", "--", "true"][..], "write it like 90s"),
        (&["--request-timeout", "0s", "--", "true"], "a duration above zero is needed"),
        (&["--request-timeout", "1s", "--url", "http://127.0.0.1:9/mcp"], "cannot be used with"),
    ] {
        let refused = Command::new(skep).args(ANY).args(flags).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(told), "{flags:?}: {said}");
    }
}

#[test]
fn a_command_that_does_not_work_is_given_up() {
    let mut proxy = Serving::start(&[&ANY[..], &["--", "/no/such/program"]].concat());
    assert_eq!(proxy.end(), Some(1));
}

/// Runs the program as pods do, in a folder with this RunConfig.
fn run_in_pod(config: Option<&str>, variables: &[(&str, &str)]) -> Output {
    let folder = TempDir::new().unwrap();
    if let Some(text) = config {
        fs::write(folder.path().join("runconfig.json"), text).unwrap();
    }
    let mut command = Command::new(cargo_bin!("skep"));
    command.args(["run", "--foreground=true", "image"]).current_dir(folder.path()).stdin(Stdio::null());
    command.env_remove("KUBERNETES_SERVICE_HOST").envs(variables.iter().copied()).output().unwrap()
}

/// A command has ended with one, and with these words.
fn is_refused(output: &Output, told: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}: {said}");
    assert!(said.contains(told), "{told}: {said}");
}

#[test]
fn trap_61_a_port_that_is_taken_ends_every_kind_of_proxy_at_its_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (skep, listen) = (cargo_bin!("skep").to_str().unwrap(), address.to_string());
    let told = format!("cannot listen on {address}");
    for server in [&["--url", "http://127.0.0.1:9/mcp"][..], &["--", skep, "demo", "echo"]] {
        for transport in ["streamable-http", "sse"] {
            let mut command = Command::new(skep);
            command.args(["proxy", "run", "--transport", transport, "--listen", &listen]).args(server);
            is_refused(&command.output().unwrap(), &told);
        }
    }
    for transport in ["stdio", "sse", "streamable-http"] {
        let config = json!({"name": "n", "port": address.port(), "transport": transport});
        is_refused(&run_in_pod(Some(&config.to_string()), &[]), &told);
    }
}

#[test]
fn trap_67_without_a_document_that_can_be_read_it_says_so_and_ends() {
    is_refused(&run_in_pod(None, &[]), "configuration file required but no configuration file was found");
    for unreadable in ["", "{", "[]", r#"{"transport": 7}"#] {
        is_refused(&run_in_pod(Some(unreadable), &[]), "cannot read the configuration file ./runconfig.json");
    }
}

#[test]
fn what_cannot_be_run_is_told_and_ends_with_one() {
    let at = |rest: &str| format!(r#"{{"name": "n", "port": 0, "transport": "stdio"{rest}}}"#);
    for (config, told) in [
        (
            Some(at(r#", "embedded_auth_server_config": {}"#)),
            "cannot do yet: embedded_auth_server_config (auth server)",
        ),
        (
            Some(at(r#", "telemetry_config": {"endpoint": "otel:4318"}"#)),
            "telemetry_config: endpoint is set, but neither tracingEnabled nor metricsEnabled is",
        ),
        (
            Some(at(r#", "upstream_swap_config": {}"#)),
            "cannot do yet: upstream_swap_config (tokens that only an auth server has)",
        ),
        (Some(at("")), "an image needs Kubernetes, and this is no pod"),
        (Some(at(r#", "publish": ["x"]"#).replace("stdio", "sse")), "an image needs Kubernetes"),
    ] {
        is_refused(&run_in_pod(config.as_deref(), &[]), told);
    }
    let output = Command::new(cargo_bin!("skep")).args(["proxy", "run"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("run --url URL") && said.contains("run -- COMMAND"), "{said}");
}

#[test]
fn flags_that_nothing_can_be_done_with_are_refused_by_their_names() {
    let url = ["--url", "http://127.0.0.1:9/mcp"];
    for (flags, told) in [
        (vec!["--url", "ftp://x"], "--url: ftp://x is neither http nor https"),
        (vec!["--url", "foo"], "--url: foo is neither http nor https"),
        (
            [&["--allow-origin", "https://a.example", "--allow-origin", "foo"], &url[..]].concat(),
            "--allow-origin: \"foo\"",
        ),
        (
            [&["--allow-origin", "https://a.example/page"], &url[..]].concat(),
            "hint: write it like https://hive.example",
        ),
        ([&["--redis", "127.0.0.1"], &url[..]].concat(), "--redis: \"127.0.0.1\" is not of the form host:port"),
    ] {
        let output = Command::new(cargo_bin!("skep")).args(ANY).args(&flags).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains(told) && said.contains("hint: "), "{flags:?}: {said}");
    }
}

/// A proxy in front of a server at an address, as the pods of an MCPRemoteProxy run it, with these additions.
fn serve_in_pod(server: &str, additions: &Value, variables: &[(&str, &str)]) -> Serving {
    serve_in_pod_telling(server, additions, variables, Stdio::null())
}

/// The same, which tells what it notices there.
fn serve_in_pod_telling(server: &str, additions: &Value, variables: &[(&str, &str)], log: impl Into<Stdio>) -> Serving {
    let folder = TempDir::new().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut config = json!({"name": "n", "port": free.port(), "transport": "streamable-http",
        "remote_url": format!("http://{server}/mcp"), "allow_private_endpoint": true,
        "middleware_configs": [{"type": "auth", "parameters": {}}, {"type": "recovery", "parameters": null}]});
    for (name, value) in additions.as_object().unwrap() {
        config[name] = value.clone();
    }
    fs::write(folder.path().join("runconfig.json"), config.to_string()).unwrap();
    let mut command = Command::new(cargo_bin!("skep"));
    command.args(["run", "--foreground=true", "placeholder-for-remote-proxy"]).current_dir(folder.path());
    command.env_remove("KUBERNETES_SERVICE_HOST").envs(variables.iter().copied());
    let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
    let proxy = Serving { child, address: free.to_string(), said: Arc::default() };
    let begun = Instant::now();
    while TcpStream::connect(free).is_err() {
        assert!(begun.elapsed() < LIMIT, "it never listens");
        std::thread::sleep(Duration::from_millis(20));
    }
    proxy
}

#[test]
fn a_remote_server_needs_no_cluster() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let lines = Serving::start(&[&ANY[..], &["--", skep, "demo", "echo"]].concat());
    lines.call("echo", &json!({"message": "up"}));
    let mut proxy = serve_in_pod(&lines.address, &json!({}), &[]);
    assert_eq!(proxy.call("echo", &json!({"message": "hi"}))["content"][0]["text"], "hi");
    proxy.signal("-TERM");
    assert_eq!(proxy.end(), Some(0));
}
