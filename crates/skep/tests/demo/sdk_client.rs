//! A client that somebody else wrote: the TypeScript SDK.

use std::process::Command;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use crate::npm::Packages;
use crate::others::first_client;
use crate::process::Server;

/// What the client prints, whatever the transport.
pub(crate) fn expected() -> Value {
    json!({
        "server": "skep-demo-echo",
        "tools": true,
        "echo": "hi",
        "sum": {"sum": 5},
        "progress": "done in 2 steps",
        "sampling": "honey",
        "elicitation": "Hello, Ada!",
        "resource": "Hello, Ada!",
        "prompt": 1,
        "steps": [1, 2],
        "logged": ["loud"],
        "updated": "demo://counter",
    })
}

/// The same before a server of this revision.
pub(crate) fn expected_of(revision: &str) -> Value {
    let mut expected = expected();
    if revision < "2025-06-18" {
        expected.as_object_mut().unwrap().retain(|name, _| name != "sum" && name != "elicitation");
    }
    expected
}

pub(crate) fn run(packages: &Packages, arguments: &[&str]) -> Value {
    printed(first_client(packages, arguments))
}

/// What a client printed.
pub(crate) fn printed(mut command: Command) -> Value {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_typescript_sdk_is_at_home_on_every_transport() {
    let Some(packages) = Packages::get("the_typescript_sdk_is_at_home_on_every_transport") else { return };
    let program = cargo_bin!("skep").display().to_string();
    assert_eq!(run(&packages, &[&program, "demo", "echo", "--transport", "stdio"]), expected());
    for (transport, path) in [("sse", "sse"), ("streamable-http", "mcp")] {
        let server = Server::start(transport);
        assert_eq!(run(&packages, &[&format!("http://{}/{path}", server.address)]), expected(), "{transport}");
    }
}
