//! MCP servers that others wrote, from npm and PyPI, as a person runs them: the examples, and kubectl.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use skep_conformance::skip::skip_outside_ci;

use super::http::Request;
use super::kubectl::Kubectl;
use super::machine::{Machine, eventually_within};
use super::mcp::{answer, call_tool, initialize, list_tools, request, tool_names, until_served};
use super::once;
use super::start::Start;
use skep_conformance::ports::free_port;

/// Downloads take as long as they take.
const PULL_LIMIT: Duration = Duration::from_mins(5);
const UV: &str = "uv==0.13.7";

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Applies manifests as kubectl does.
fn apply(kubectl: &Kubectl, machine: &Machine, manifests: &str) {
    let file = machine.folder.path().join("manifests.yaml");
    std::fs::write(&file, manifests).unwrap();
    kubectl.run(&["apply", "-f", file.to_str().unwrap()]);
}

/// Waits until the only container of the pod with this label runs; false when there is no network to pull it by.
async fn is_ready(kubectl: &Kubectl, machine: &Machine, test: &str, selector: &[&str]) -> bool {
    let offline = Mutex::new(None);
    eventually_within(PULL_LIMIT, test, || async {
        let list: Value =
            serde_json::from_str(&kubectl.run(&[&["get", "pods", "-o", "json"], selector].concat())).unwrap();
        let container = &list["items"][0]["status"]["containerStatuses"][0];
        let told = container["state"]["waiting"]["message"].as_str().unwrap_or_default();
        *offline.lock().unwrap() = once::is_offline(told);
        let done = container["ready"] == true || once::is_offline(told).is_some();
        if done { Ok(()) } else { Err(format!("{container:#}\n{}", machine.said())) }
    })
    .await;
    let sign = offline.into_inner().unwrap();
    sign.inspect(|sign| skip_outside_ci(test, &format!("the registry cannot be reached ({sign})"))).is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_from_npm_answers() {
    let test = "a_server_from_npm_answers";
    let Some(program) = Kubectl::or_skip(test) else { return };
    if Command::new("npm").arg("--version").output().is_err() {
        return skip_outside_ci(test, "Node.js is not installed");
    }
    let Some(machine) = Start::new().or_skip(test).await else { return };
    machine.until_installed().await;
    let kubectl = Kubectl::of(&machine, program);
    let port = free_port().unwrap();
    let manifests = example("everything.yaml").replace("proxyPort: 3001", &format!("proxyPort: {port}"));
    apply(&kubectl, &machine, &manifests);
    if !is_ready(&kubectl, &machine, test, &["-l", "app=everything"]).await {
        return;
    }
    let address = format!("127.0.0.1:{port}");
    until_served(PULL_LIMIT, &address, || machine.said()).await;
    let response = Request::post(&initialize()).send(&address);
    let session = response.header("mcp-session-id").unwrap().to_owned();
    let hello = answer(response);
    assert_eq!(hello["result"]["serverInfo"]["name"], "mcp-servers/everything", "{hello}");
    let tell = |message: &Value| {
        let request = Request::post(message).header("Mcp-Session-Id", &session);
        request.header("MCP-Protocol-Version", "2025-06-18").send(&address)
    };
    assert_eq!(tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).status, 202);
    let tools = tool_names(&answer(tell(&request(2, "tools/list", &json!({})))));
    assert!(tools.contains(&"echo".to_owned()), "{tools:?}");
    let said = answer(tell(&request(3, "tools/call", &json!({"name": "echo", "arguments": {"message": "honey"}}))));
    assert!(said["result"]["content"][0]["text"].as_str().unwrap().contains("honey"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_from_pypi_answers() {
    let test = "a_server_from_pypi_answers";
    let Some(program) = Kubectl::or_skip(test) else { return };
    let uv = once::install("pypi", UV, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--retries", "1", "--target"]).arg(folder).arg(UV);
        pip
    });
    let uv = match uv {
        Ok(folder) => folder.join("bin"),
        Err(reason) => return skip_outside_ci(test, &reason),
    };
    let path = format!("{}:{}", uv.display(), std::env::var("PATH").unwrap());
    let Some(machine) = Start::new().variable("PATH", path).or_skip(test).await else { return };
    machine.until_installed().await;
    let kubectl = Kubectl::of(&machine, program);
    let port = free_port().unwrap();
    let manifests = example("time.yaml").replace("proxyPort: 3002", &format!("proxyPort: {port}"));
    apply(&kubectl, &machine, &manifests);
    if !is_ready(&kubectl, &machine, test, &["-l", "app=time"]).await {
        return;
    }
    let address = format!("127.0.0.1:{port}");
    until_served(PULL_LIMIT, &address, || machine.said()).await;
    let tools = list_tools(&address);
    assert!(tools.contains(&"get_current_time".to_owned()), "{tools:?}");
    let said = call_tool(&address, "get_current_time", &json!({"timezone": "UTC"}));
    assert!(said["content"][0]["text"].as_str().unwrap().contains("\"timezone\": \"UTC\""), "{said}");
}
