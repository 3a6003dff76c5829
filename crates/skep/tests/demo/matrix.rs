//! Every revision of a client with every revision of a server, through the proxy: all that clients do without one.

use skep_proxy::transparent::Dialect;

use crate::cells::{self, pairs};
use crate::peer::{Peer, STATELESS};
use crate::process::Server;
use crate::proxied::{Proxied, demo};
use crate::revisions::{
    REVISIONS, check_batches, check_cancellation, check_changes, check_large, check_logs, check_methods,
    check_progress, check_questions, check_resources_and_prompts, check_tools,
};

/// The revisions that have sessions.
pub(crate) const WITH_SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Runs a check in every cell, before a server on streamable HTTP.
fn over_http(check: impl Fn(&mut Peer) + Sync) {
    cells::each(&pairs(&REVISIONS, &REVISIONS), |(server, client)| {
        eprintln!("a client of {client}, a server of {server}");
        let process = Server::of_revision("streamable-http", server);
        let proxied = Proxied::transparent(Dialect::Streamable, &process, false);
        check(&mut Peer::through(&proxied.address, client, server));
    });
}

/// Runs a check with all clients, before processes on standard input and output of these revisions.
fn over_stdio(servers: &[&'static str], check: impl Fn(&mut Peer) + Sync) {
    cells::each(&pairs(servers, &REVISIONS), |(server, client)| {
        eprintln!("a client of {client}, a process of {server}");
        let proxied = Proxied::bridge_to(&["--revision", server]);
        check(&mut Peer::through(&proxied.address, client, server));
    });
}

#[test]
fn tools_over_http() {
    over_http(check_tools);
}

// Far more than is read at once anywhere on the way, between the oldest and the newest.
#[test]
fn large_answers_over_every_transport() {
    const ENDS: [&str; 2] = ["2024-11-05", STATELESS];
    cells::each(&pairs(&ENDS, &ENDS), |(server, client)| {
        eprintln!("a client of {client}, a server of {server}");
        let process = Server::of_revision("streamable-http", server);
        let transparent = Proxied::transparent(Dialect::Streamable, &process, false);
        for proxied in [transparent, Proxied::bridge_to(&["--revision", server])] {
            check_large(&mut Peer::through(&proxied.address, client, server));
            if *client != STATELESS {
                check_large(&mut Peer::through_sse(&proxied.address, "/mcp", client, server));
            }
        }
    });
}

#[test]
fn progress_over_http() {
    over_http(check_progress);
}

#[test]
fn logs_over_http() {
    over_http(check_logs);
}

#[test]
fn questions_over_http() {
    over_http(check_questions);
}

#[test]
fn resources_and_prompts_over_http() {
    over_http(check_resources_and_prompts);
}

#[test]
fn changes_over_http() {
    over_http(check_changes);
}

#[test]
fn cancellation_over_http() {
    over_http(check_cancellation);
}

#[test]
fn methods_over_http() {
    over_http(check_methods);
}

#[test]
fn batches_over_http() {
    over_http(check_batches);
}

#[test]
fn tools_over_stdio() {
    over_stdio(&REVISIONS, check_tools);
}

#[test]
fn resources_and_prompts_over_stdio() {
    over_stdio(&REVISIONS, check_resources_and_prompts);
}

#[test]
fn changes_over_stdio() {
    over_stdio(&REVISIONS, check_changes);
}

#[test]
fn cancellation_over_stdio() {
    over_stdio(&REVISIONS, check_cancellation);
}

#[test]
fn methods_over_stdio() {
    over_stdio(&REVISIONS, check_methods);
}

#[test]
fn batches_over_stdio() {
    over_stdio(&REVISIONS, check_batches);
}

// A process is shared, so that questions of its one session are nobody's. So are its log messages, in both eras.
#[test]
fn questions_over_stdio() {
    over_stdio(&[STATELESS], check_questions);
}

// A process of the session's own is like a server of its own: all that its revision has reaches the client.
#[test]
fn everything_over_processes_of_sessions() {
    cells::each(&pairs(&WITH_SESSIONS, &WITH_SESSIONS), |(server, client)| {
        eprintln!("a client of {client}, a process of {server} for its session");
        let proxied = Proxied::own(&demo(&["--revision", server]));
        for check in [check_tools, check_progress, check_logs, check_questions, check_changes, check_cancellation] {
            check(&mut Peer::through(&proxied.address, client, server));
        }
    });
}

#[test]
fn progress_over_stdio() {
    over_stdio(&REVISIONS, check_progress);
}

// HTTP+SSE has no batches on this side, and a request that was called off has no stream of its own to end.
const OVER_SSE: [fn(&mut Peer); 5] =
    [check_tools, check_resources_and_prompts, check_changes, check_progress, check_methods];

#[test]
fn everything_else_over_sse() {
    cells::each(&WITH_SESSIONS, |client| {
        for check in OVER_SSE.into_iter().chain([check_questions as fn(&mut Peer)]) {
            eprintln!("a client of {client} on HTTP+SSE, a process of {STATELESS}");
            let proxied = Proxied::sse_to(&["--revision", STATELESS]);
            check(&mut Peer::through_sse(&proxied.address, "/sse", client, STATELESS));
        }
    });
}

// The endpoint of streamable HTTP is that of HTTP+SSE, too, for clients that begin with its stream.
#[test]
fn everything_else_over_sse_at_the_address_of_streamable_http() {
    cells::each(&pairs(&REVISIONS, &WITH_SESSIONS), |(server, client)| {
        eprintln!("a client of {client} on HTTP+SSE, a process of {server}, at one address");
        let proxied = Proxied::bridge_to(&["--revision", server]);
        for check in OVER_SSE {
            check(&mut Peer::through_sse(&proxied.address, "/mcp", client, server));
        }
        check_tools(&mut Peer::through(&proxied.address, client, server));
    });
}

// A server that speaks HTTP+SSE only, before clients that do not.
#[test]
fn everything_before_servers_on_sse() {
    cells::each(&pairs(&WITH_SESSIONS, &REVISIONS), |(server, client)| {
        eprintln!("a client of {client} on streamable HTTP, a server of {server} on HTTP+SSE");
        let process = Server::of_revision("sse", server);
        let proxied = Proxied::transparent(Dialect::Sse, &process, false);
        for check in [
            check_tools,
            check_progress,
            check_logs,
            check_questions,
            check_resources_and_prompts,
            check_cancellation,
            check_methods,
            check_batches,
            check_changes,
        ] {
            check(&mut Peer::through(&proxied.address, client, server));
        }
    });
}

// The other way round: clients on HTTP+SSE before servers that do not speak it.
#[test]
fn everything_else_over_sse_before_servers_on_streamable_http() {
    cells::each(&pairs(&REVISIONS, &WITH_SESSIONS), |(server, client)| {
        eprintln!("a client of {client} on HTTP+SSE, a server of {server} on streamable HTTP");
        let process = Server::of_revision("streamable-http", server);
        let proxied = Proxied::transparent(Dialect::Streamable, &process, false);
        for check in OVER_SSE.into_iter().chain([check_questions as fn(&mut Peer), check_logs]) {
            check(&mut Peer::through_sse(&proxied.address, "/sse", client, server));
        }
    });
}

// Both sides speak HTTP+SSE, and nothing but their revisions differs.
#[test]
fn everything_else_over_sse_before_servers_on_sse() {
    cells::each(&pairs(&WITH_SESSIONS, &WITH_SESSIONS), |(server, client)| {
        eprintln!("a client of {client}, a server of {server}, both on HTTP+SSE");
        let process = Server::of_revision("sse", server);
        let proxied = Proxied::transparent(Dialect::Sse, &process, false);
        for check in OVER_SSE.into_iter().chain([check_questions as fn(&mut Peer), check_logs, check_cancellation]) {
            check(&mut Peer::through_sse(&proxied.address, "/sse", client, server));
        }
    });
}
