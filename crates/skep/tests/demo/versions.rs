//! The first TypeScript SDK at the time of each revision that has sessions, as a client and as a server. As a server it knows
//! no other revision, so that whoever does not speak it needs the proxy.

use std::collections::BTreeMap;

use crate::cells::{self, pairs};
use crate::foreign::{self, Feature, Has};
use crate::matrix::WITH_SESSIONS;
use crate::npm::Packages;
use crate::others::{first_client, newest_server, second_client, second_server};
use crate::peer::STATELESS;
use crate::peers::{before_all, behind_proxy, expected_of_foreign, try_process, try_server, try_sse_server};
use crate::revisions::REVISIONS;
use crate::sdk_client::printed;

/// The newest revision of each version. The oldest one has no other transport of the network than HTTP+SSE.
pub(crate) const FIRST_SDK: [(&str, &str); 4] =
    [("2024-11-05", "1.9.0"), ("2025-03-26", "1.12.3"), ("2025-06-18", "1.17.5"), ("2025-11-25", "1.32.2")];

/// The version of each revision, or nothing when this machine cannot have one; then the test is recorded as skipped.
fn of_each_revision(test: &str) -> Option<BTreeMap<&'static str, Packages>> {
    FIRST_SDK.into_iter().map(|(revision, version)| Some((revision, Packages::version(test, version)?))).collect()
}

#[test]
fn the_first_typescript_sdk_of_each_revision_before_servers_of_all_revisions() {
    let test = "the_first_typescript_sdk_of_each_revision_before_servers_of_all_revisions";
    let Some(versions) = of_each_revision(test) else { return };
    before_all(&WITH_SESSIONS, |url, revision| first_client(&versions[revision], &[url]));
}

#[test]
fn servers_of_the_first_typescript_sdk_of_each_revision_before_all_clients() {
    let test = "servers_of_the_first_typescript_sdk_of_each_revision_before_all_clients";
    let Some(versions) = of_each_revision(test) else { return };
    for (&revision, packages) in &versions {
        eprintln!("a server of {revision}");
        let server = |transport| newest_server(packages, transport);
        if revision == "2024-11-05" {
            // It tells changes without having promised that.
            try_sse_server(server("sse"), Has::CHANGES_WITHIN_SESSIONS, |_| revision);
            try_process(&server("stdio"), Has::CHANGES_WITHIN_SESSIONS, |_| revision);
        } else {
            try_server(server("http"), Has::CHANGES_WITHIN_SESSIONS, |_| revision);
            try_process(&server("stdio"), Has::ALL, |_| revision);
        }
    }
}

// Neither side is ours: each client asks for the newest revision of its version, and each server knows no other than its own.
#[test]
fn the_typescript_sdks_of_all_revisions_before_each_other() {
    let test = "the_typescript_sdks_of_all_revisions_before_each_other";
    let (Some(versions), Some(second)) = (of_each_revision(test), Packages::second(test)) else { return };
    let make_server = |revision: &str, transport: &str| match versions.get(revision) {
        Some(packages) => newest_server(packages, transport),
        None => second_server(&second, transport),
    };
    let make_client = |revision: &str, url: &str| match versions.get(revision) {
        Some(packages) => first_client(packages, &[url]),
        None => second_client(&second, url),
    };
    cells::each(&pairs(&REVISIONS, &["http", "stdio"]), |&(server, transport)| {
        let transport = if (server, transport) == ("2024-11-05", "http") { "sse" } else { transport };
        let (_server, proxied) = behind_proxy(make_server(server, transport), transport);
        for client in REVISIONS {
            let has = features(client, server, transport);
            let mut command = make_client(client, &format!("http://{}/mcp", proxied.address));
            command.env("FOREIGN", foreign::words(&has));
            let expected = expected_of_foreign(client == STATELESS, &has);
            assert_eq!(printed(&command), expected, "a client of {client}, a server of {server} on {transport}");
        }
    });
}

/// What such a server has towards such a client.
fn features(client: &str, server: &str, transport: &str) -> Vec<Feature> {
    let is_stateless = client == STATELESS;
    let mut has = match transport {
        "stdio" => Has::ALL.on_lines(is_stateless, server == STATELESS),
        _ => Has::ALL.towards(is_stateless).to_vec(),
    };
    // Users could not be asked before.
    has.retain(|feature| *feature != Feature::Questions || client.min(server) >= "2025-06-18");
    has
}
