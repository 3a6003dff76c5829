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
use crate::proxy::report::Report;
use crate::proxy::resolve::Hashes;

/// Conditions that only this controller writes. One about which a pass says nothing is removed.
const MANAGED: [&str; 14] = [
    types::READY,
    types::POD_TEMPLATE_VALID,
    types::STDIO_REPLICA_CAPPED,
    types::SESSION_STORAGE_WARNING,
    types::RATE_LIMIT_CONFIG_VALID,
    types::GROUP_REF_VALIDATED,
    types::CA_BUNDLE_REF_VALIDATED,
    types::OIDC_CONFIG_REF_VALIDATED,
    types::AUTHZ_CONFIG_REF_VALIDATED,
    types::TELEMETRY_CONFIG_REF_VALIDATED,
    types::EXTERNAL_AUTH_CONFIG_VALIDATED,
    types::AUTH_SERVER_REF_VALIDATED,
    types::WEBHOOK_CONFIG_VALIDATED,
    types::AUTHZ_PRIMARY_UPSTREAM_PROVIDER_IGNORED,
];

/// The hashes that the last pass left.
pub fn hashes(status: Option<&MCPServerStatus>) -> Hashes {
    let Some(status) = status else { return Hashes::default() };
    Hashes {
        auth_server: status.auth_server_config_hash.clone(),
        authz: status.authz_config_hash.clone(),
        external_auth: status.external_auth_config_hash.clone(),
        oidc: status.oidc_config_hash.clone(),
        telemetry: status.telemetry_config_hash.clone(),
        tools: status.tool_config_hash.clone(),
        webhooks: status.webhook_config_hash.clone(),
    }
}

/// The status after a pass.
pub fn status(
    server: &MCPServer,
    outcome: Result<Standing, Incomplete>,
    hashes: Hashes,
    mut report: Report,
) -> MCPServerStatus {
    let before = server.status.clone().unwrap_or_default();
    let generation = server.metadata.generation;
    let mut status = MCPServerStatus {
        auth_server_config_hash: hashes.auth_server,
        authz_config_hash: hashes.authz,
        external_auth_config_hash: hashes.external_auth,
        oidc_config_hash: hashes.oidc,
        telemetry_config_hash: hashes.telemetry,
        tool_config_hash: hashes.tools,
        webhook_config_hash: hashes.webhooks,
        observed_generation: generation,
        selector: Some(labels::selector_text(&labels::mcp_server(&server.name_any()))),
        ..before
    };
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
    status.conditions = report.conditions(&status.conditions, &MANAGED, generation);
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
