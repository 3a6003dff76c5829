//! The status of an MCPRemoteProxy, from what a pass found out.

use skep_api::conditions::{Statement, types};
use skep_api::kinds::MCPRemoteProxy;
use skep_api::kinds::mcp_remote_proxy::{MCPRemoteProxyPhase, MCPRemoteProxyStatus};
use skep_api::names::mcp_remote_proxy;

use super::phase::Standing;
use crate::proxy::Proxied as _;
use crate::proxy::build::Incomplete;
use crate::proxy::report::Report;
use crate::proxy::resolve::Hashes;

/// Conditions that only this controller writes. One about which a pass says nothing is removed.
const MANAGED: [&str; 14] = [
    types::READY,
    types::CONFIGURATION_VALID,
    types::AUTH_CONFIGURED,
    types::POD_TEMPLATE_VALID,
    types::SESSION_STORAGE_WARNING,
    types::GROUP_REF_VALIDATED,
    types::CA_BUNDLE_REF_VALIDATED,
    types::OIDC_CONFIG_REF_VALIDATED,
    types::AUTHZ_CONFIG_REF_VALIDATED,
    types::TELEMETRY_CONFIG_REF_VALIDATED,
    types::EXTERNAL_AUTH_CONFIG_VALIDATED,
    types::AUTH_SERVER_REF_VALIDATED,
    types::TOOL_CONFIG_VALIDATED,
    types::AUTHZ_PRIMARY_UPSTREAM_PROVIDER_IGNORED,
];

/// The hashes that the last pass left.
pub fn hashes(status: Option<&MCPRemoteProxyStatus>) -> Hashes {
    let Some(status) = status else { return Hashes::default() };
    Hashes {
        auth_server: status.auth_server_config_hash.clone(),
        authz: status.authz_config_hash.clone(),
        external_auth: status.external_auth_config_hash.clone(),
        oidc: status.oidc_config_hash.clone(),
        telemetry: status.telemetry_config_hash.clone(),
        tools: status.tool_config_hash.clone(),
        webhooks: None,
    }
}

/// The status after a pass.
pub fn status(
    proxy: &MCPRemoteProxy,
    outcome: Result<Standing, Incomplete>,
    hashes: Hashes,
    mut report: Report,
) -> MCPRemoteProxyStatus {
    let before = proxy.status.clone().unwrap_or_default();
    let generation = proxy.metadata.generation;
    let mut status = MCPRemoteProxyStatus {
        auth_server_config_hash: hashes.auth_server,
        authz_config_hash: hashes.authz,
        external_auth_config_hash: hashes.external_auth,
        oidc_config_hash: hashes.oidc,
        telemetry_config_hash: hashes.telemetry,
        tool_config_hash: hashes.tools,
        observed_generation: generation,
        ..before
    };
    match outcome {
        Ok(phase) => {
            report.say(phase.verdict());
            status.phase = Some(phase.phase);
            status.message = Some(phase.message.to_owned());
            let common = proxy.common();
            status.url = Some(mcp_remote_proxy::url(common.name, common.namespace, common.proxy_port));
        }
        Err(incomplete) => {
            report.say(Statement::fails(types::READY, incomplete.reason, incomplete.text));
            let failed = MCPRemoteProxyPhase::Failed;
            status.phase = Some(if incomplete.is_pending { MCPRemoteProxyPhase::Pending } else { failed });
            status.message = incomplete.message.or(status.message);
        }
    }
    status.conditions = report.conditions(&status.conditions, &MANAGED, generation);
    status
}
