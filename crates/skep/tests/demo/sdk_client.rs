//! A client that somebody else wrote: the TypeScript SDK.

use std::process::Command;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;

use crate::npm::Packages;
use crate::others::first_client;
use crate::process::Server;

/// Seconds that a client may take. Python alone takes many of them to begin on a machine that is busy.
const PATIENCE: &str = "240";

/// What the client prints, whatever the transport.
pub(crate) fn expected() -> Value {
    json!({
        "server": "skep-demo-echo",
        "ping": "{}",
        "tools": true,
        "echo": "hi",
        "resources": true,
        "templates": true,
        "prompts": true,
        "completion": ["Ada", "Alan"],
        "sum": {"sum": 5},
        "progress": "done in 2 steps",
        "calledOff": true,
        "sampling": "honey",
        "roots": "Roots: file:///hive",
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
    printed(&first_client(packages, arguments))
}

/// What a client printed.
pub(crate) fn printed(command: &Command) -> Value {
    // A client that waits for what never comes is ended.
    let mut limited = Command::new("timeout");
    limited.arg(PATIENCE).arg(command.get_program()).args(command.get_args());
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    let output = limited.output().unwrap();
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
