//! The demo server behind the proxy: clients should not notice.

use std::sync::Arc;

use skep_proxy::stdio::{Bridge, ChildProcess, ChildProcesses};
use skep_proxy::transparent::{Dialect, Target, Transparent};
use skep_proxy::{Forwarded, Limits, Proxy, Readiness, SessionStore};
use snapbox::cmd::cargo_bin;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::http::Request;
use crate::npm::Packages;
use crate::process::Server;
use crate::sdk_client;
use crate::suite::{OWN_PROCESS, SHARED_PROCESS, check, check_set};

/// A proxy in this process.
pub(crate) struct Proxied {
    pub(crate) address: String,
    stop: CancellationToken,
    _runtime: Runtime,
}

impl Proxied {
    fn start(make: impl FnOnce(&Readiness) -> (Proxy, Option<(Arc<Bridge>, ChildProcess)>)) -> Self {
        let runtime = Runtime::new().unwrap();
        let stop = CancellationToken::new();
        let readiness = Readiness::default();
        let (proxy, bridge) = runtime.block_on(async { make(&readiness) });
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        runtime.spawn(proxy.serve(listener, stop.clone()));
        if let Some((bridge, process)) = bridge {
            runtime.spawn(bridge.run(process, stop.clone()));
            runtime.block_on(readiness.ready());
        }
        Self { address, stop, _runtime: runtime }
    }

    /// Streamable HTTP before a server that speaks it.
    pub(crate) fn transparent(dialect: Dialect, server: &Server, is_remote: bool) -> Self {
        let address = format!("http://{}", server.address);
        let target = if is_remote {
            Target::remote(dialect, &format!("{address}/mcp")).map(Target::allowing_private)
        } else {
            Target::local(dialect, &address)
        };
        let proxied = Self::start(|_| {
            let transparent = Transparent::new(target.unwrap(), Limits::default(), Forwarded::default()).unwrap();
            (Proxy::transparent(transparent), None)
        });
        // It is ready when it does not say otherwise.
        while Request::new("OPTIONS", "/ready").send(&proxied.address).status == 503 {}
        proxied
    }

    /// Streamable HTTP before the demo server on standard input and output, with these arguments.
    pub(crate) fn bridge_to(server: &[&str]) -> Self {
        Self::start(|readiness| {
            let bridge = Bridge::new(Limits::default(), readiness.clone());
            (Proxy::streamable(Arc::clone(&bridge)), Some((bridge, demo(server))))
        })
    }

    /// The same before any process, with one for each session.
    pub(crate) fn own(process: &ChildProcess) -> Self {
        Self::start(|readiness| {
            let processes = ChildProcesses::new(process.clone(), SESSIONS);
            let bridge =
                Bridge::with_processes(Limits::default(), readiness.clone(), SessionStore::memory(), processes);
            (Proxy::streamable(Arc::clone(&bridge)), Some((bridge, process.clone())))
        })
    }

    /// HTTP+SSE before a server on standard input and output.
    pub(crate) fn sse_to(server: &[&str]) -> Self {
        Self::start(|readiness| {
            let bridge = Bridge::new(Limits::default(), readiness.clone());
            (Proxy::sse(Arc::clone(&bridge), Forwarded::default()), Some((bridge, demo(server))))
        })
    }
}

/// Processes of sessions at the same time. The suite leaves most of its sessions open.
const SESSIONS: usize = 200;

/// The demo server on standard input and output, with these arguments.
pub(crate) fn demo(arguments: &[&str]) -> ChildProcess {
    let arguments = ["demo", "echo", "--transport", "stdio"].iter().chain(arguments).map(Into::into).collect();
    ChildProcess { program: cargo_bin!("skep").as_os_str().to_owned(), arguments, ..Default::default() }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[test]
fn the_public_suite_does_not_notice_a_transparent_proxy() {
    let Some(packages) = Packages::get("the_public_suite_does_not_notice_a_transparent_proxy") else { return };
    for is_remote in [false, true] {
        let server = Server::start("streamable-http");
        let proxied = Proxied::transparent(Dialect::Streamable, &server, is_remote);
        check(&packages, &format!("the proxy, remote {is_remote}"), &proxied.address, &[]);
    }
}

#[test]
fn the_public_suite_finds_in_the_bridge_only_what_clients_cannot_share() {
    let Some(packages) = Packages::get("the_public_suite_finds_in_the_bridge_only_what_clients_cannot_share") else {
        return;
    };
    check(&packages, "the bridge", &Proxied::bridge_to(&[]).address, &[SHARED_PROCESS]);
    check(&packages, "processes of sessions", &Proxied::own(&demo(&[])).address, &[OWN_PROCESS]);
}

#[test]
fn the_public_suite_finds_in_a_server_of_the_other_era_only_what_has_no_counterpart() {
    let test = "the_public_suite_finds_in_a_server_of_the_other_era_only_what_has_no_counterpart";
    let Some(packages) = Packages::get(test) else { return };
    for (requirements, revision) in [("2025-11-25", "2026-07-28"), ("2026-07-28", "2025-11-25")] {
        let server = Server::of_revision("streamable-http", revision);
        let proxied = Proxied::transparent(Dialect::Streamable, &server, false);
        let differences = include_str!("era_expected_failures.txt");
        let what = format!("the proxy, before a server of {revision}");
        check_set(&packages, requirements, &what, &proxied.address, &[differences]);
    }
}

#[test]
fn the_typescript_sdk_does_not_notice_a_transparent_proxy() {
    let Some(packages) = Packages::get("the_typescript_sdk_does_not_notice_a_transparent_proxy") else { return };
    for (transport, dialect, path) in [("sse", Dialect::Sse, "sse"), ("streamable-http", Dialect::Streamable, "mcp")] {
        let server = Server::start(transport);
        let proxied = Proxied::transparent(dialect, &server, false);
        let found = sdk_client::run(&packages, &[&format!("http://{}/{path}", proxied.address)]);
        assert_eq!(found, sdk_client::expected(), "{transport}");
    }
}
