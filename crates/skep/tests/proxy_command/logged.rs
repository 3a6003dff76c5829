//! What the log of a proxy tells about its metrics, and what it never tells.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};
use skep_conformance::ports::free_port;
use snapbox::cmd::cargo_bin;
use tempfile::NamedTempFile;

use super::http::Request;
use super::{ANY, LIMIT, Serving, is_refused, message, run_in_pod, serve_in_pod_telling};

/// A proxy whose log is kept.
struct Logged {
    proxy: Serving,
    log: NamedTempFile,
}

impl Logged {
    fn start(server: &str, additions: &Value, variables: &[(&str, &str)]) -> Self {
        let log = NamedTempFile::new().unwrap();
        let proxy = serve_in_pod_telling(server, additions, variables, File::create(log.path()).unwrap());
        Self { proxy, log }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap()
    }

    /// Waits for a line that has this member.
    fn line_with(&self, member: &str) -> Value {
        let begun = Instant::now();
        loop {
            let text = self.text();
            let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            if let Some(line) = lines.find(|line| line[member] != Value::Null && line["level"] == "WARN") {
                return line;
            }
            assert!(begun.elapsed() < LIMIT, "nothing has {member}: {text}");
        }
    }

    /// Where its metrics are, by its own words.
    fn metrics(&self) -> String {
        self.line_with("address")["address"].as_str().unwrap().to_owned()
    }
}

/// Metrics at a port of their own, and steps as they follow from that.
fn metered(port: u16) -> Value {
    let telemetry =
        json!({"enablePrometheusMetricsPath": true, "prometheusPort": port, "metricsOnTransportPort": false});
    json!({"telemetry_config": telemetry, "middleware_configs": null})
}

/// Somebody who asks for metrics, and stays.
fn scrape(address: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let mut begin = [0; 12];
    connection.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
    connection
}

#[test]
fn what_is_asked_for_where_it_has_no_effect_is_told() {
    let strict = Logged::start("127.0.0.1:9", &json!({"strict_protocol_validation": true}), &[]);
    assert_eq!(strict.line_with("ignored")["ignored"], "strict_protocol_validation");
    // Flags for servers at a URL are refused before a command, but variables are there for all of them.
    let skep = cargo_bin!("skep");
    let chosen = ["SKEP_PARKED_CALLS", "SKEP_BACKEND_SESSIONS", "SKEP_BACKEND_SESSION_IDLE"];
    let mut command = Command::new(skep);
    command.args(ANY).args(["--", "/no/such/program"]).envs(chosen.into_iter().zip(["off", "shared", "90s"]));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    for name in chosen {
        let told = said.lines().find(|line| line.contains(name));
        assert!(
            told.is_some_and(|line| line.contains("WARN") && line.contains("it is for servers that speak HTTP")),
            "{said}"
        );
    }
}

#[test]
fn trap_57_another_port_for_metrics_is_told_and_every_end_gives_the_port_back() {
    let skep = cargo_bin!("skep").to_str().unwrap();
    let server = Serving::start(&[&ANY[..], &["--", skep, "demo", "echo"]].concat());
    let port = free_port().unwrap();
    let wanted = format!("127.0.0.1:{port}");
    let taken = TcpListener::bind(&wanted).unwrap();
    let elsewhere = Logged::start(&server.address, &metered(port), &[]);
    assert_eq!(elsewhere.line_with("port")["port"], port, "the port that cannot be used is named");
    let address = elsewhere.metrics();
    assert_ne!(address, wanted);
    scrape(&address);
    drop((elsewhere, taken));

    // However it ends, and although somebody is still connected, the next one has the port.
    for (signal, code) in [("-TERM", Some(0)), ("-INT", Some(0)), ("-QUIT", Some(0)), ("-KILL", None)] {
        let mut logged = Logged::start(&server.address, &metered(port), &[]);
        assert_eq!(logged.metrics(), wanted, "before {signal}: {}", logged.text());
        let connection = scrape(&wanted);
        logged.proxy.signal(signal);
        assert_eq!(logged.proxy.end(), code, "{signal}");
        assert!(TcpStream::connect(&wanted).is_err(), "{signal}: it is still open");
        drop(connection);
    }
    // A step behind it that makes no sense is found when it is open already.
    let mut config = metered(port);
    config["authz_config"] = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["permit"]}});
    for (name, value) in [("name", "n"), ("transport", "sse"), ("remote_url", "http://127.0.0.1:9/sse")] {
        config[name] = json!(value);
    }
    let refused = run_in_pod(Some(&config.to_string()), &[]);
    is_refused(&refused, "cannot be used: authz_config: cedar.policies[0]");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains(&wanted), "it was open: {said}");
    assert!(!said.contains("\"serving\""), "it serves nobody: {said}");
    assert_eq!(Logged::start(&server.address, &metered(port), &[]).metrics(), wanted);
}

/// A server and a collector in one, which takes everything and remembers the headers that it got.
pub(super) fn remembering() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, heads) = (listener.local_addr().unwrap().to_string(), Arc::new(Mutex::new(String::new())));
    let remembered = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let heads = Arc::clone(&remembered);
            std::thread::spawn(move || while answer(&stream, &heads).is_some() {});
        }
    });
    (address, heads)
}

/// Answers one request. Nothing when the connection has ended.
fn answer(mut stream: &TcpStream, heads: &Mutex<String>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head += &line;
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    heads.lock().unwrap().push_str(&head);
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).ok()
}

#[test]
fn trap_58_what_headers_say_is_in_no_log() {
    const SECRETS: [&str; 6] =
        ["plain-hunter", "secret-hunter", "bearer-hunter", "collector-hunter", "hidden-hunter", "caller-hunter"];
    let [plain, secret, bearer, collector, hidden, caller] = SECRETS;
    let (server, heads) = remembering();
    let additions = json!({
        "middleware_configs": null,
        "header_forward": {"add_plaintext_headers": {"X-Plain": plain}, "add_headers_from_secret": {"X-Secret": "ID"}},
        "remote_auth_config": {"bearer_token": "own,target=bearer_token"},
        "telemetry_config": {"endpoint": server, "insecure": true, "tracingEnabled": true, "metricsEnabled": true,
            "samplingRate": "1", "headers": {"X-Collector": collector}},
    });
    let variables = [
        ("TOOLHIVE_SECRET_ID", secret),
        ("TOOLHIVE_SECRET_own", bearer),
        ("TOOLHIVE_OTEL_HEADER_X_HIDDEN", hidden),
        // Everything that there is to tell.
        ("TOOLHIVE_DEBUG", "true"),
        ("RUST_LOG", "trace"),
    ];
    let mut logged = Logged::start(&server, &additions, &variables);
    let ping = Request::post(&message(1, "ping", &json!({}))).header("X-Caller", caller);
    let begun = Instant::now();
    while ping.send(&logged.proxy.address).status != 200 {
        assert!(begun.elapsed() < LIMIT, "it never serves: {}", logged.text());
    }
    logged.proxy.signal("-TERM");
    assert_eq!(logged.proxy.end(), Some(0));
    let (heads, log) = (heads.lock().unwrap().clone(), logged.text());
    assert!(log.contains("\"TRACE\"") && log.len() > 1000, "{log}");
    for secret in SECRETS {
        assert!(heads.contains(secret), "{secret} is not used: {heads}");
        assert!(!log.contains(secret), "{secret} is told: {log}");
    }
}

#[test]
fn what_protects_less_than_somebody_may_think_is_told_at_the_start() {
    let hook = |name: &str, url: &str| {
        let tls = json!({"insecure_skip_verify": true});
        json!({"name": name, "url": url, "failure_policy": "fail", "tls_config": tls})
    };
    let additions = json!({
        "middleware_configs": null,
        "oidc_config": {"Issuer": "https://login.example"},
        "authz_config_path": "/etc/policies.json",
        "audit_config_path": "/etc/audit.json",
        "authz_confg": {},
        "scaling_config": {"sesion_redis": {}},
        "validating_webhooks": [hook("plain", "http://127.0.0.1:9/"), hook("any", "https://127.0.0.1:9/")],
    });
    let logged = Logged::start("127.0.0.1:9", &additions, &[]);
    let begun = Instant::now();
    while !logged.text().contains("\"serving\"") {
        assert!(begun.elapsed() < LIMIT, "it never serves: {}", logged.text());
    }
    let log = logged.text();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("\"WARN\"")).collect();
    for told in [
        "oidc_config has no Audience",
        "authz_config_path has no effect",
        "audit_config_path has no effect",
        "authz_confg, scaling_config.sesion_redis",
        "without TLS, which protects nothing",
        "insecure_skip_verify",
    ] {
        assert_eq!(warnings.iter().filter(|line| line.contains(told)).count(), 1, "{told}: {log}");
    }
}

#[test]
fn a_list_of_steps_that_asks_nobody_who_they_are_is_told() {
    for (steps, told) in [
        (json!([{"type": "mcp-parser"}]), "callers are not asked who they are: middleware_configs has no step auth"),
        (
            json!([{"type": "auth"}]),
            "callers are not asked who they are: everybody who can reach the proxy is the local user",
        ),
    ] {
        let logged = Logged::start("127.0.0.1:9", &json!({"middleware_configs": steps}), &[]);
        let begun = Instant::now();
        while !logged.text().contains("\"serving\"") {
            assert!(begun.elapsed() < LIMIT, "it never serves: {}", logged.text());
        }
        let log = logged.text();
        assert!(log.contains(told), "{log}");
        assert_eq!(log.matches("callers are not asked").count(), 1, "{log}");
    }
}

#[test]
fn trap_58_a_document_that_is_refused_is_not_repeated() {
    let at = |rest: &str| {
        format!(r#"{{"name": "n", "port": 0, "transport": "sse", "remote_url": "http://127.0.0.1:9/sse", {rest}}}"#)
    };
    let forward = |value: &str| at(&format!(r#""header_forward": {{"add_plaintext_headers": {{"X-Key": {value}}}}}"#));
    let collect = |value: &str| {
        let telemetry = format!(r#"{{"endpoint": "c:1", "metricsEnabled": true, "headers": {{"X-Key": {value}}}}}"#);
        at(&format!(r#""telemetry_config": {telemetry}"#))
    };
    for (config, told) in [
        (forward(r#""hunter2\n""#), "X-Key"),
        (forward(r#"["hunter2"]"#), "X-Key"),
        (forward(r#""hunter2"#), "cannot read the configuration file"),
        (collect(r#""hunter2\n""#), "x-key"),
        (collect(r#"{"hunter2": 1}"#), "X-Key"),
    ] {
        let refused = run_in_pod(Some(&config), &[("RUST_LOG", "trace")]);
        is_refused(&refused, told);
        assert!(!String::from_utf8_lossy(&refused.stderr).contains("hunter2"), "{told}: {refused:?}");
    }
}
