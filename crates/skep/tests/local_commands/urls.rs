//! Every endpoint has a URL on this machine that stays what it is.

use std::collections::BTreeMap;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::here::{Here, echo};
use skep_conformance::ports::free_port;

fn urls(status: &[Value]) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    status.iter().map(|row| (text(&row["name"]), text(&row["localUrl"]))).collect()
}

fn all_tell(count: usize) -> impl Fn(&[Value]) -> bool {
    move |rows| rows.len() == count && rows.iter().all(|row| row["tools"].is_array())
}

#[test]
fn two_services_may_want_one_port() {
    let here = Here::new();
    let port = free_port().unwrap();
    let first = here.manifest("first.json", &echo("second-by-name", port));
    here.up(&["-f", &first]);
    here.status_when("the first is there", all_tell(1));
    // Somebody else has the next number, which is not known to any service.
    let taken = TcpListener::bind(("127.0.0.1", port + 1));
    let other = here.manifest("other.json", &echo("first-by-name", port));
    assert_eq!(
        here.done(&["apply", "-f", &other]),
        "deployment.apps/first-by-name created\nservice/first-by-name created\n"
    );
    let before = urls(&here.status_when("both are there", all_tell(2)));
    assert_eq!(before["second-by-name"], format!("http://127.0.0.1:{port}/mcp"));
    assert_ne!(before["first-by-name"], before["second-by-name"]);
    assert_ne!(before["first-by-name"], format!("http://127.0.0.1:{}/mcp", port + 1));
    drop(taken);
    here.done(&["down"]);
    here.up(&["--no-demo"]);
    assert_eq!(urls(&here.status_when("both are back", all_tell(2))), before);
}

#[test]
fn a_port_that_somebody_has_taken_is_tried_again() {
    let here = Here::new();
    let port = free_port().unwrap();
    here.up(&["-f", &here.manifest("echo.json", &echo("echo", port))]);
    let before = urls(&here.status_when("it is there", all_tell(1)));
    here.done(&["down"]);
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let said = here.run(&["up", "--detach", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let told = format!("port {port} of 127.0.0.1 is in use by another program");
    assert!(said.stderr.contains(&format!("error: not served: default/echo ({told}")), "{said:?}");
    let row = &here.status()[0];
    assert_eq!((&row["phase"], &row["ready"], &row["tools"]), (&json!("Failed"), &json!(false), &json!(null)));
    assert!(row["message"].as_str().unwrap().starts_with(&told), "{row:#}");
    let log = std::fs::read_to_string(here.data().join("log")).unwrap();
    assert!(log.contains(&format!("is not open at 127.0.0.1:{port}: ")) && !log.contains("Door"), "{log}");
    drop(taken);
    assert_eq!(urls(&here.status_when("it has its port back", all_tell(1))), before);
}

#[test]
fn a_node_port_that_somebody_has_taken_is_told() {
    let here = Here::new();
    here.up(&["-f", &here.manifest("echo.json", &echo("echo", free_port().unwrap()))]);
    let service: Value = serde_json::from_str(&here.done(&["get", "service", "echo", "-o", "json"])).unwrap();
    let port = u16::try_from(service["spec"]["ports"][0]["nodePort"].as_u64().unwrap()).unwrap();
    here.done(&["down"]);
    let Ok(_taken) = TcpListener::bind(("127.0.0.1", port)) else {
        return skep_conformance::skip::skip(
            "a_node_port_that_somebody_has_taken_is_told",
            "another test has that port",
        );
    };
    here.up(&[]);
    let rows = here.status_when("it is told", |rows| rows.len() == 1 && rows[0]["message"].is_string());
    let told = format!("its URL works, but node port {port} of 127.0.0.1 is in use by another program");
    assert!(rows[0]["message"].as_str().unwrap().starts_with(&told), "{rows:#?}");
    assert_eq!(rows[0]["ready"], true);
}

#[test]
fn a_server_that_speaks_the_old_way_is_found() {
    let here = Here::new();
    let port = free_port().unwrap();
    let [mut deployment, mut service] = echo("old", port);
    deployment["spec"]["template"]["spec"]["containers"][0]["args"][1] = json!("sse");
    service["spec"]["ports"][0]["name"] = json!("mcp");
    here.up(&["-f", &here.manifest("old.json", &[deployment, service])]);
    let rows = here.status_when("it tells its tools", all_tell(1));
    let url = format!("http://127.0.0.1:{port}/sse");
    assert_eq!((&rows[0]["localUrl"], &rows[0]["transport"]), (&json!(url), &json!("sse")));
    assert_eq!(rows[0]["url"], format!("http://old.default.svc.cluster.local:{port}/sse"));
    let client: Value = serde_json::from_str(&here.done(&["status", "-o", "client"])).unwrap();
    assert_eq!(client, json!({"mcpServers": {"old": {"type": "sse", "url": url}}}));
}

#[test]
fn the_endpoint_of_an_mcp_server_is_that_of_its_service() {
    let here = Here::new();
    let port = free_port().unwrap();
    let server = json!({"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "metadata": {"name": "hive", "namespace": "default"},
        "spec": {"image": "skep-demo/echo", "transport": "streamable-http", "proxyPort": port}});
    here.up(&["--no-demo"]);
    here.done(&["apply", "-f", &here.manifest("hive.json", &[server])]);
    let rows = here.status_when("it tells its tools", |rows| rows.iter().any(|row| row["tools"].is_array()));
    assert_eq!(rows.len(), 1, "the services of a server are no endpoints of their own: {rows:#?}");
    let url = format!("http://mcp-hive-proxy.default.svc.cluster.local:{port}/mcp");
    assert_eq!((&rows[0]["kind"], &rows[0]["phase"]), (&json!("MCPServer"), &json!("Ready")));
    assert_eq!((&rows[0]["url"], &rows[0]["transport"]), (&json!(url), &json!("streamable-http")));
    assert_eq!(rows[0]["localUrl"], format!("http://127.0.0.1:{port}/mcp"));
    assert!(rows[0]["tools"].as_array().unwrap().contains(&json!("echo")));
}
