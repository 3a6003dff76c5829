//! Clients and servers that others wrote, old and new, before each era of the other side: they should not notice.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use skep_conformance::skip::skip;
use skep_proxy::stdio::ChildProcess;
use skep_proxy::transparent::Dialect;

use crate::npm::Packages;
use crate::once;
use crate::peer::{Peer, STATELESS};
use crate::process::Server;
use crate::proxied::Proxied;
use crate::revisions::REVISIONS;
use crate::sdk_client::{client, expected_of, printed};

/// A version of the Python SDK, or nothing when this machine cannot have it; then the test is recorded as skipped.
fn python_sdk(test: &str, package: &str) -> Option<PathBuf> {
    let installed = once::install("pypi", package, |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--retries=1", "--target"]).arg(folder).arg(package);
        pip
    });
    installed.map_err(|reason| skip(test, &reason)).ok()
}

/// Runs a client before a server of each revision, and compares what it got with what it gets without a proxy.
fn before_all(make: impl Fn(&str) -> Command) {
    for revision in REVISIONS {
        let server = Server::of_revision("streamable-http", revision);
        let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
        let mut client = make(&format!("http://{}/mcp", proxied.address));
        client.env("OLDEST", revision);
        assert_eq!(printed(client), expected_of(revision), "a server of {revision}");
    }
}

#[test]
fn the_first_typescript_sdk_before_servers_of_all_revisions() {
    let Some(packages) = Packages::get("the_first_typescript_sdk_before_servers_of_all_revisions") else { return };
    before_all(|url| client(&packages, &[url]));
}

#[test]
fn the_second_typescript_sdk_before_servers_of_all_revisions() {
    let Some(packages) = Packages::second("the_second_typescript_sdk_before_servers_of_all_revisions") else { return };
    before_all(|url| {
        let mut node = script(&packages, include_str!("sdk2_client.mjs"));
        node.arg(url);
        node
    });
}

#[test]
fn the_first_python_sdk_before_servers_of_all_revisions() {
    let test = "the_first_python_sdk_before_servers_of_all_revisions";
    let Some(folder) = python_sdk(test, "mcp==1.30.0") else { return };
    before_all(|url| python(&folder, include_str!("python_client.py"), url));
}

#[test]
fn the_second_python_sdk_before_servers_of_all_revisions() {
    let test = "the_second_python_sdk_before_servers_of_all_revisions";
    let Some(folder) = python_sdk(test, "mcp==2.3.0") else { return };
    before_all(|url| python(&folder, include_str!("python2_client.py"), url));
}

/// Calls the tools of a server with clients of all revisions. `revision` is the one that it speaks with a client.
pub(crate) fn try_server(command: Command, revision: impl Fn(&'static str) -> &'static str) {
    let server = Server::foreign(command);
    let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
    for client in REVISIONS {
        try_tools(&mut Peer::through(&proxied.address, client, revision(client)), |_| true);
    }
}

/// The same with a process on lines, of which each session has one. Clients without sessions share one, which cannot ask
/// unless its requests stand alone, too.
pub(crate) fn try_process(command: &Command, revision: impl Fn(&'static str) -> &'static str) {
    let proxied = Proxied::own(&process(command));
    for client in REVISIONS {
        let mut peer = Peer::through(&proxied.address, client, revision(client));
        try_tools(&mut peer, |peer| !peer.is_stateless() || peer.server == STATELESS);
    }
}

/// A command as a process that a bridge starts.
fn process(command: &Command) -> ChildProcess {
    let folder = command.get_current_dir().unwrap_or(Path::new("/"));
    let words = ["-C".as_ref(), folder.as_os_str(), command.get_program()].into_iter().chain(command.get_args());
    let environment = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let arguments = words.map(ToOwned::to_owned).collect();
    ChildProcess { program: "env".into(), arguments, environment: environment.collect() }
}

fn try_tools(peer: &mut Peer, can_ask: impl Fn(&Peer) -> bool) {
    let client = peer.revision;
    let tools = peer.result("tools/list", &json!({}));
    let names: Vec<&Value> = tools["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["echo", "greet"], "{client}");
    let said = peer.result("tools/call", &json!({"name": "echo", "arguments": {"message": "hum"}}));
    assert_eq!(said["content"][0]["text"], "hum", "{client}");
    if peer.oldest() >= "2025-06-18" && can_ask(peer) {
        let said = peer.result("tools/call", &json!({"name": "greet", "arguments": {}}));
        assert_eq!(said["content"][0]["text"], "Hello, Ada!", "{client}");
    }
}

/// What a server that has sessions speaks with a client: at most the newest revision of them.
fn with_sessions(client: &'static str) -> &'static str {
    client.min("2025-11-25")
}

#[test]
fn servers_of_the_first_typescript_sdk_before_all_clients() {
    let Some(packages) = Packages::get("servers_of_the_first_typescript_sdk_before_all_clients") else { return };
    let server = || script(&packages, include_str!("sdk_server.mjs"));
    try_server(server(), with_sessions);
    try_process(server().arg("stdio"), with_sessions);
}

#[test]
fn servers_of_the_second_typescript_sdk_before_all_clients() {
    let Some(packages) = Packages::second("servers_of_the_second_typescript_sdk_before_all_clients") else { return };
    let server = || script(&packages, include_str!("sdk2_server.mjs"));
    try_server(server(), |_| STATELESS);
    try_process(server().arg("stdio"), |_| STATELESS);
}

#[test]
fn servers_of_the_first_python_sdk_before_all_clients() {
    let test = "servers_of_the_first_python_sdk_before_all_clients";
    let Some(folder) = python_sdk(test, "mcp==1.30.0") else { return };
    let server = |argument| python(&folder, include_str!("python_server.py"), argument);
    try_server(server(""), with_sessions);
    try_process(&server("stdio"), with_sessions);
}

#[test]
fn servers_of_the_second_python_sdk_before_all_clients() {
    let test = "servers_of_the_second_python_sdk_before_all_clients";
    let Some(folder) = python_sdk(test, "mcp==2.3.0") else { return };
    let server = |argument| python(&folder, include_str!("python2_server.py"), argument);
    // It speaks all revisions, and with each client the client's.
    try_server(server(""), |client| client);
    try_process(&server("stdio"), |client| client);
}

fn script(packages: &Packages, script: &str) -> Command {
    let mut node = packages.node();
    node.args(["--input-type=module", "--eval", script, "--"]);
    node
}

fn python(packages: &Path, script: &str, url: &str) -> Command {
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", packages).args(["-c", script, url]);
    python
}
