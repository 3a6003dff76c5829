//! rmcp, the Rust SDK, as a client of every revision before servers of every revision, and as a server before clients of
//! every revision.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use skep_conformance::skip::skip_outside_ci;

use crate::foreign::Has;
use crate::once;
use crate::peers::{before_all, try_process, try_server};
use crate::revisions::REVISIONS;

/// All that the peer is made of. Another text is another peer.
const SOURCE: [&str; 6] = [
    include_str!("../rmcp_peer/Cargo.toml"),
    include_str!("../rmcp_peer/Cargo.lock"),
    include_str!("../rmcp_peer/src/main.rs"),
    include_str!("../rmcp_peer/src/client.rs"),
    include_str!("../rmcp_peer/src/server.rs"),
    include_str!("../rmcp_peer/src/words.rs"),
];

/// The peer, or nothing when this machine cannot have it; then the test is recorded as skipped.
pub(crate) fn peer(test: &str) -> Option<PathBuf> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match INSTALLED.get_or_init(install) {
        Ok(folder) => Some(folder.join("bin/rmcp-peer")),
        Err(reason) => {
            skip_outside_ci(test, reason);
            None
        }
    }
}

/// Builds it, once for this machine.
fn install() -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    SOURCE.hash(&mut hasher);
    let target = tempfile::tempdir().unwrap();
    once::install("cargo", &format!("rmcp-peer-{:x}", hasher.finish()), |folder| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["install", "--quiet", "--locked", "--debug", "--no-track", "--path"]);
        cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rmcp_peer")).arg("--root").arg(folder);
        cargo.arg("--target-dir").arg(target.path());
        cargo
    })
}

/// The client of a revision.
pub(crate) fn client(peer: &Path, url: &str, revision: &str, folder: &Path) -> Command {
    let mut command = Command::new(peer);
    command.args([url, revision]).arg(folder);
    command
}

/// The server on a transport.
pub(crate) fn server(peer: &Path, transport: &str) -> Command {
    let mut command = Command::new(peer);
    command.arg(transport);
    command
}

#[test]
fn rmcp_of_every_revision_before_servers_of_every_revision() {
    let Some(peer) = peer("rmcp_of_every_revision_before_servers_of_every_revision") else { return };
    let folder = tempfile::tempdir().unwrap();
    before_all(&REVISIONS, |url, revision| client(&peer, url, revision, folder.path()));
}

#[test]
fn servers_of_rmcp_before_all_clients() {
    let Some(peer) = peer("servers_of_rmcp_before_all_clients") else { return };
    // It speaks all revisions, and with each client the client's.
    try_server(server(&peer, "http"), Has::NO_NOTIFICATIONS, |client| client);
    try_process(&server(&peer, "stdio"), Has::NO_NOTIFICATIONS, |client| client);
}
