//! Clients and servers that others wrote, old and new, before each era of the other side: they should not notice.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use skep_conformance::skip::skip;
use skep_proxy::stdio::ChildProcess;
use skep_proxy::transparent::Dialect;

use crate::cells::{self, pairs};
use crate::foreign::{self, Has};
use crate::npm::Packages;
use crate::once;
use crate::peer::{Peer, STATELESS};
use crate::process::Server;
use crate::proxied::{Proxied, demo};
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

/// Runs a client before a server of each revision, and compares what it got with what it gets without a proxy. Then the
/// same before processes on lines, of which each session has one; clients without sessions share one, which can neither ask
/// nor log.
fn before_all(has_sessions: bool, make: impl Fn(&str) -> Command + Sync) {
    let got = |proxied: &Proxied, revision: &str| {
        let mut client = make(&format!("http://{}/mcp", proxied.address));
        client.env("OLDEST", revision);
        printed(client)
    };
    cells::each(&REVISIONS, |revision| {
        let server = Server::of_revision("streamable-http", revision);
        let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
        assert_eq!(got(&proxied, revision), expected_of(revision), "a server of {revision}");
        let proxied = Proxied::own(&demo(&["--revision", revision]));
        let (mut got, mut expected) = (got(&proxied, revision), expected_of(revision));
        if !has_sessions {
            for of_one_client in ["sampling", "elicitation", "logged"] {
                for told in [&mut got, &mut expected] {
                    told.as_object_mut().unwrap().remove(of_one_client);
                }
            }
        }
        assert_eq!(got, expected, "a process of {revision}");
    });
}

#[test]
fn the_first_typescript_sdk_before_servers_of_all_revisions() {
    let Some(packages) = Packages::get("the_first_typescript_sdk_before_servers_of_all_revisions") else { return };
    before_all(true, |url| client(&packages, &[url]));
}

#[test]
fn the_second_typescript_sdk_before_servers_of_all_revisions() {
    let Some(packages) = Packages::second("the_second_typescript_sdk_before_servers_of_all_revisions") else { return };
    before_all(false, |url| second_client(&packages, url));
}

#[test]
fn the_first_python_sdk_before_servers_of_all_revisions() {
    let test = "the_first_python_sdk_before_servers_of_all_revisions";
    let Some(folder) = python_sdk(test, "mcp==1.30.0") else { return };
    before_all(true, |url| python(&folder, include_str!("python_client.py"), url));
}

#[test]
fn the_second_python_sdk_before_servers_of_all_revisions() {
    let test = "the_second_python_sdk_before_servers_of_all_revisions";
    let Some(folder) = python_sdk(test, "mcp==2.3.0") else { return };
    before_all(false, |url| python(&folder, include_str!("python2_client.py"), url));
}

/// Uses a server with clients of all revisions. `revision` is the one that it speaks with a client.
pub(crate) fn try_server(command: Command, has: Has, revision: impl Fn(&'static str) -> &'static str + Sync) {
    let server = Server::foreign(command);
    let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
    cells::each(&REVISIONS, |client| {
        foreign::check_server(&mut Peer::through(&proxied.address, client, revision(client)), has);
    });
}

/// The same with a process on lines, of which each session has one. Clients without sessions share one.
pub(crate) fn try_process(command: &Command, has: Has, revision: impl Fn(&'static str) -> &'static str + Sync) {
    let proxied = Proxied::own(&process(command));
    cells::each(&REVISIONS, |client| {
        foreign::check_process(&mut Peer::through(&proxied.address, client, revision(client)), has);
    });
}

/// A command as a process that a bridge starts.
fn process(command: &Command) -> ChildProcess {
    let folder = command.get_current_dir().unwrap_or(Path::new("/"));
    let words = ["-C".as_ref(), folder.as_os_str(), command.get_program()].into_iter().chain(command.get_args());
    let environment = command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let arguments = words.map(ToOwned::to_owned).collect();
    ChildProcess { program: "env".into(), arguments, environment: environment.collect() }
}

/// What a server that has sessions speaks with a client: at most the newest revision of them.
fn with_sessions(client: &'static str) -> &'static str {
    client.min("2025-11-25")
}

#[test]
fn servers_of_the_first_typescript_sdk_before_all_clients() {
    let Some(packages) = Packages::get("servers_of_the_first_typescript_sdk_before_all_clients") else { return };
    let server = || script(&packages, include_str!("sdk_server.mjs"));
    try_server(server(), Has::CHANGES_WITHIN_SESSIONS, with_sessions);
    try_process(server().arg("stdio"), Has::ALL, with_sessions);
}

#[test]
fn servers_of_the_second_typescript_sdk_before_all_clients() {
    let Some(packages) = Packages::second("servers_of_the_second_typescript_sdk_before_all_clients") else { return };
    let server = || script(&packages, include_str!("sdk2_server.mjs"));
    try_server(server(), Has::ALL, |_| STATELESS);
    try_process(server().arg("stdio"), Has::ALL_BUT_CHANGES, |_| STATELESS);
}

#[test]
fn servers_of_the_first_python_sdk_before_all_clients() {
    let test = "servers_of_the_first_python_sdk_before_all_clients";
    let Some(folder) = python_sdk(test, "mcp==1.30.0") else { return };
    let server = |argument| python(&folder, include_str!("python_server.py"), argument);
    try_server(server(""), Has::CHANGES_WITHIN_SESSIONS, with_sessions);
    try_process(&server("stdio"), Has::CHANGES_WITHIN_SESSIONS, with_sessions);
}

#[test]
fn servers_of_the_second_python_sdk_before_all_clients() {
    let test = "servers_of_the_second_python_sdk_before_all_clients";
    let Some(folder) = python_sdk(test, "mcp==2.3.0") else { return };
    let server = |argument| python(&folder, include_str!("python2_server.py"), argument);
    // It speaks all revisions, and with each client the client's.
    try_server(server(""), Has::MORE_FOR_SESSIONS, |client| client);
    try_process(&server("stdio"), Has::MORE_FOR_SESSIONS, |client| client);
}

// Neither side is ours.
#[test]
fn clients_of_others_before_servers_of_others() {
    let test = "clients_of_others_before_servers_of_others";
    let (Some(first), Some(second)) = (Packages::get(test), Packages::second(test)) else { return };
    let (Some(old), Some(new)) = (python_sdk(test, "mcp==1.30.0"), python_sdk(test, "mcp==2.3.0")) else { return };
    let servers = [
        script(&first, include_str!("sdk_server.mjs")),
        script(&second, include_str!("sdk2_server.mjs")),
        python(&old, include_str!("python_server.py"), ""),
        python(&new, include_str!("python2_server.py"), ""),
    ];
    let servers = servers.map(|command| {
        let server = Server::foreign(command);
        let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
        (server, proxied)
    });
    let clients: [&(dyn Fn(&str) -> Command + Sync); 4] = [
        &|url| client(&first, &[url]),
        &|url| second_client(&second, url),
        &|url| python(&old, include_str!("python_client.py"), url),
        &|url| python(&new, include_str!("python2_client.py"), url),
    ];
    cells::each(&pairs(&[0, 1, 2, 3], &[0, 1, 2, 3]), |(server, client)| {
        let mut command = clients[*client](&format!("http://{}/mcp", servers[*server].1.address));
        command.env("FOREIGN", "yes");
        let expected = json!({"tools": true, "echo": "hi", "resource": "Hello!", "prompt": "Greet Ada."});
        assert_eq!(printed(command), expected, "client {client}, server {server}");
    });
}

fn second_client(packages: &Packages, url: &str) -> Command {
    let mut node = script(packages, include_str!("sdk2_client.mjs"));
    node.arg(url);
    node
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
