//! Clients and servers that others wrote, old and new, before each era of the other side: they should not notice.

use std::process::Command;

use serde_json::{Value, json};
use skep_proxy::transparent::Dialect;

use crate::cells::{self, pairs};
use crate::foreign::{self, Feature, Has};
use crate::matrix::WITH_SESSIONS;
use crate::npm::Packages;
use crate::others::{
    FIRST_PYTHON, SECOND_PYTHON, first_client, first_server, process, python_client, python_sdk, python_server,
    second_client, second_python_client, second_python_server, second_server,
};
use crate::peer::{Peer, STATELESS};
use crate::process::Server;
use crate::proxied::{Proxied, demo};
use crate::revisions::REVISIONS;
use crate::rmcp;
use crate::sdk_client::{expected_of, printed};
use crate::versions::FIRST_SDK;

/// What a process that clients share has for none of them.
const OF_ONE_CLIENT: [&str; 4] = ["sampling", "elicitation", "roots", "logged"];

/// Runs a client, and compares what it got with what it gets without a proxy.
fn compare(mut command: Command, client: &str, server: &str, is_shared: bool) {
    command.env("OLDEST", client.min(server));
    if is_shared {
        command.env("SHARED", "yes");
    }
    let (mut got, mut expected) = (printed(&command), expected_of(client.min(server)));
    if client == STATELESS {
        // Its revision has no such method.
        expected.as_object_mut().unwrap().remove("ping");
    }
    if is_shared {
        for told in [&mut got, &mut expected] {
            told.as_object_mut().unwrap().retain(|name, _| !OF_ONE_CLIENT.contains(&name.as_str()));
        }
    }
    assert_eq!(got, expected, "a client of {client}, a server of {server}");
}

/// Runs a client of each of these revisions before servers of each revision, and before processes on lines: each session
/// has one, and clients without sessions share one. `make` is given the address and the client's revision.
pub(crate) fn before_all(clients: &[&str], make: impl Fn(&str, &str) -> Command + Sync) {
    cells::each(&REVISIONS, |server| {
        let process = Server::of_revision("streamable-http", server);
        let transparent = Proxied::transparent(Dialect::Streamable, &process, false);
        let bridge = Proxied::own(&demo(&["--revision", server]));
        for client in clients {
            let at = |proxied: &Proxied| make(&format!("http://{}/mcp", proxied.address), client);
            compare(at(&transparent), client, server, false);
            compare(at(&bridge), client, server, *client == STATELESS);
        }
    });
}

#[test]
fn the_second_typescript_sdk_before_servers_of_all_revisions() {
    let Some(packages) = Packages::second("the_second_typescript_sdk_before_servers_of_all_revisions") else { return };
    before_all(&[STATELESS], |url, _| second_client(&packages, url));
}

#[test]
fn the_first_python_sdk_before_servers_of_all_revisions() {
    let Some(folder) = python_sdk("the_first_python_sdk_before_servers_of_all_revisions", FIRST_PYTHON) else { return };
    before_all(&["2025-11-25"], |url, _| python_client(&folder, url));
}

#[test]
fn the_second_python_sdk_before_servers_of_all_revisions() {
    let test = "the_second_python_sdk_before_servers_of_all_revisions";
    let Some(folder) = python_sdk(test, SECOND_PYTHON) else { return };
    before_all(&[STATELESS], |url, _| second_python_client(&folder, url));
}

#[test]
fn clients_on_sse_before_servers_on_sse_of_all_revisions() {
    let test = "clients_on_sse_before_servers_on_sse_of_all_revisions";
    let (Some(oldest), Some(newest)) = (Packages::version(test, FIRST_SDK[0].1), Packages::get(test)) else { return };
    let Some(folder) = python_sdk(test, FIRST_PYTHON) else { return };
    cells::each(&WITH_SESSIONS, |server| {
        let process = Server::of_revision("sse", server);
        let proxied = Proxied::transparent(Dialect::Sse, &process, false);
        let url = format!("http://{}/sse", proxied.address);
        compare(first_client(&oldest, &[&url]), "2024-11-05", server, false);
        compare(first_client(&newest, &[&url]), "2025-11-25", server, false);
        compare(python_client(&folder, &url), "2025-11-25", server, false);
    });
}

/// Uses a server with clients of all revisions. `revision` is the one that it speaks with a client.
pub(crate) fn try_server(command: Command, has: Has, revision: impl Fn(&'static str) -> &'static str + Sync) {
    let server = Server::foreign(command);
    let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
    cells::each(&REVISIONS, |client| {
        foreign::check_server(&mut Peer::through(&proxied.address, client, revision(client)), has);
    });
}

/// The same with a server on HTTP+SSE. Clients that have sessions come on that transport, too.
pub(crate) fn try_sse_server(command: Command, has: Has, revision: impl Fn(&'static str) -> &'static str + Sync) {
    let server = Server::foreign(command);
    let proxied = Proxied::transparent(Dialect::Sse, &server, false);
    cells::each(&REVISIONS, |client| {
        foreign::check_server(&mut Peer::through(&proxied.address, client, revision(client)), has);
        if *client != STATELESS {
            foreign::check_server(&mut Peer::through_sse(&proxied.address, "/sse", client, revision(client)), has);
        }
    });
}

/// The same with a process on lines, of which each session has one. Clients without sessions share one.
pub(crate) fn try_process(command: &Command, has: Has, revision: impl Fn(&'static str) -> &'static str + Sync) {
    let proxied = Proxied::own(&process(command));
    cells::each(&REVISIONS, |client| {
        foreign::check_process(&mut Peer::through(&proxied.address, client, revision(client)), has);
    });
}

/// What a server that has sessions speaks with a client: at most the newest revision of them.
fn with_sessions(client: &'static str) -> &'static str {
    client.min("2025-11-25")
}

#[test]
fn servers_of_the_first_typescript_sdk_before_all_clients() {
    let Some(packages) = Packages::get("servers_of_the_first_typescript_sdk_before_all_clients") else { return };
    let server = |transport| first_server(&packages, transport);
    try_server(server("http"), Has::CHANGES_WITHIN_SESSIONS, with_sessions);
    try_sse_server(server("sse"), Has::CHANGES_WITHIN_SESSIONS, with_sessions);
    try_process(&server("stdio"), Has::ALL, with_sessions);
}

#[test]
fn servers_of_the_second_typescript_sdk_before_all_clients() {
    let Some(packages) = Packages::second("servers_of_the_second_typescript_sdk_before_all_clients") else { return };
    let server = |transport| second_server(&packages, transport);
    try_server(server("http"), Has::ALL, |_| STATELESS);
    try_process(&server("stdio"), Has::ALL, |_| STATELESS);
}

#[test]
fn servers_of_the_first_python_sdk_before_all_clients() {
    let Some(folder) = python_sdk("servers_of_the_first_python_sdk_before_all_clients", FIRST_PYTHON) else { return };
    let server = |transport| python_server(&folder, transport);
    try_server(server("http"), Has::ROOTS_BESIDE_CALLS, with_sessions);
    try_sse_server(server("sse"), Has::CHANGES_WITHIN_SESSIONS, with_sessions);
    try_process(&server("stdio"), Has::CHANGES_WITHIN_SESSIONS, with_sessions);
}

#[test]
fn servers_of_the_second_python_sdk_before_all_clients() {
    let Some(folder) = python_sdk("servers_of_the_second_python_sdk_before_all_clients", SECOND_PYTHON) else { return };
    let server = |transport| second_python_server(&folder, transport);
    // It speaks all revisions, and with each client the client's.
    try_server(server("http"), Has::MORE_FOR_SESSIONS, |client| client);
    try_process(&server("stdio"), Has::MORE_FOR_SESSIONS, |client| client);
}

/// A server on HTTP, on HTTP+SSE or on lines behind a proxy.
pub(crate) fn behind_proxy(command: Command, transport: &str) -> (Option<Server>, Proxied) {
    let dialect = match transport {
        "stdio" => return (None, Proxied::own(&process(&command))),
        "sse" => Dialect::Sse,
        _ => Dialect::Streamable,
    };
    let server = Server::foreign(command);
    let proxied = Proxied::transparent(dialect, &server, false);
    (Some(server), proxied)
}

/// What a client of somebody else prints before a server of somebody else that has this towards it.
pub(crate) fn expected_of_foreign(is_stateless: bool, has: &[Feature]) -> Value {
    let mut expected = json!({
        "tools": true, "echo": "hi", "resources": true, "templates": true, "prompts": true,
        "completion": ["Ada", "Alan"], "resource": "Hello!", "templated": "Hello, Ada!", "prompt": "Greet Ada.",
        "progress": "done", "steps": [1, 2],
    });
    let more = [
        (!is_stateless, "ping", json!("{}")),
        (has.contains(&Feature::Questions), "elicitation", json!("Hello, Ada!")),
        (has.contains(&Feature::Roots), "roots", json!("file:///hive")),
        (has.contains(&Feature::Cancellation), "calledOff", json!(true)),
    ];
    for (_, name, value) in more.into_iter().filter(|(is_there, ..)| *is_there) {
        expected[name] = value;
    }
    expected
}

/// Makes a command, for a transport or for an address.
type Make<'a> = &'a (dyn Fn(&str) -> Command + Sync);

/// A server of somebody else: its command, what it has on HTTP and on lines, and whether it knows no sessions.
type ForeignServer<'a> = (Make<'a>, Has, Has, bool);

// Neither side is ours.
#[test]
fn clients_of_others_use_all_that_servers_of_others_have() {
    let test = "clients_of_others_use_all_that_servers_of_others_have";
    let (Some(first), Some(second)) = (Packages::get(test), Packages::second(test)) else { return };
    let (Some(old), Some(new)) = (python_sdk(test, FIRST_PYTHON), python_sdk(test, SECOND_PYTHON)) else { return };
    let Some(rust) = rmcp::peer(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let servers: [ForeignServer<'_>; 5] = [
        (&|transport| first_server(&first, transport), Has::CHANGES_WITHIN_SESSIONS, Has::ALL, false),
        (&|transport| second_server(&second, transport), Has::ALL, Has::ALL_BUT_CHANGES, true),
        (
            &|transport| python_server(&old, transport),
            Has::CHANGES_WITHIN_SESSIONS,
            Has::CHANGES_WITHIN_SESSIONS,
            false,
        ),
        (&|transport| second_python_server(&new, transport), Has::MORE_FOR_SESSIONS, Has::MORE_FOR_SESSIONS, true),
        (&|transport| rmcp::server(&rust, transport), Has::NO_NOTIFICATIONS, Has::NO_NOTIFICATIONS, true),
    ];
    let clients: [(Make<'_>, bool); 6] = [
        (&|url| first_client(&first, &[url]), false),
        (&|url| second_client(&second, url), true),
        (&|url| python_client(&old, url), false),
        (&|url| second_python_client(&new, url), true),
        (&|url| rmcp::client(&rust, url, "2025-11-25", folder.path()), false),
        (&|url| rmcp::client(&rust, url, STATELESS, folder.path()), true),
    ];
    cells::each(&pairs(&[0, 1, 2, 3, 4], &["http", "stdio"]), |&(number, transport)| {
        let (server, over_http, on_lines, knows_stateless) = servers[number];
        let (_server, proxied) = behind_proxy(server(transport), transport);
        for (client_number, &(client, is_stateless)) in clients.iter().enumerate() {
            let has = match transport {
                "stdio" => on_lines.on_lines(is_stateless, knows_stateless),
                _ => over_http.towards(is_stateless).to_vec(),
            };
            let mut command = client(&format!("http://{}/mcp", proxied.address));
            command.env("FOREIGN", foreign::words(&has));
            let expected = expected_of_foreign(is_stateless, &has);
            assert_eq!(printed(&command), expected, "client {client_number}, server {number} on {transport}");
        }
    });
}
