//! The status of an MCPServer, from what a pass found out.

use kube::ResourceExt as _;
use skep_api::conditions::{Statement, types};
use skep_api::kinds::MCPServer;
use skep_api::kinds::mcp_server::{MCPServerPhase, MCPServerStatus};
use skep_api::kinds::transport::{ProxyMode, RemoteTransport, ServerTransport};
use skep_api::names::{labels, mcp_server};

use super::phase::Standing;
use crate::proxy::Proxied as _;
use crate::proxy::build::Incomplete;
use crate::proxy::hashes::{Hashes, KeepsHashes as _};
use crate::proxy::report::Report;

/// Conditions that only this kind has.
const OWN: [&str; 3] = [types::STDIO_REPLICA_CAPPED, types::RATE_LIMIT_CONFIG_VALID, types::WEBHOOK_CONFIG_VALIDATED];

/// The status after a pass.
pub fn status(
    server: &MCPServer,
    outcome: Result<Standing, Incomplete>,
    hashes: Hashes,
    mut report: Report,
) -> MCPServerStatus {
    let generation = server.metadata.generation;
    let mut status = MCPServerStatus {
        observed_generation: generation,
        selector: Some(labels::selector_text(&labels::mcp_server(&server.name_any()))),
        ..server.status.clone().unwrap_or_default()
    };
    status.keep_hashes(hashes);
    match outcome {
        Ok(phase) => {
            report.say(phase.verdict());
            status.phase = Some(phase.phase);
            status.message = Some(phase.message);
            status.ready_replicas = Some(phase.ready_replicas);
            status.url = Some(url(server));
        }
        Err(incomplete) => {
            report.say(Statement::fails(types::READY, incomplete.reason, incomplete.text));
            status.phase = Some(if incomplete.is_pending { MCPServerPhase::Pending } else { MCPServerPhase::Failed });
            status.message = incomplete.message.or(status.message);
        }
    }
    status.conditions = report.conditions(&status.conditions, &OWN, generation);
    status
}

/// Where clients inside the cluster reach the server.
fn url(server: &MCPServer) -> String {
    let transport = match (server.spec.transport, server.spec.proxy_mode) {
        (ServerTransport::Sse, _) | (ServerTransport::Stdio, ProxyMode::Sse) => RemoteTransport::Sse,
        (ServerTransport::StreamableHttp, _) | (ServerTransport::Stdio, ProxyMode::StreamableHttp) => {
            RemoteTransport::StreamableHttp
        }
    };
    let common = server.common();
    mcp_server::url(common.name, common.namespace, common.proxy_port, transport)
}
