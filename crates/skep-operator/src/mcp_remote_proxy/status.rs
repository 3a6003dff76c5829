//! The status of an MCPRemoteProxy, from what a pass found out.

use skep_api::conditions::{Statement, types};
use skep_api::kinds::MCPRemoteProxy;
use skep_api::kinds::mcp_remote_proxy::{MCPRemoteProxyPhase, MCPRemoteProxyStatus};
use skep_api::names::mcp_remote_proxy;

use super::phase::Standing;
use crate::proxy::Proxied as _;
use crate::proxy::build::Incomplete;
use crate::proxy::hashes::{Hashes, KeepsHashes as _};
use crate::proxy::report::Report;

/// Conditions that only this kind has.
const OWN: [&str; 3] = [types::CONFIGURATION_VALID, types::AUTH_CONFIGURED, types::TOOL_CONFIG_VALIDATED];

/// The status after a pass.
pub fn status(
    proxy: &MCPRemoteProxy,
    outcome: Result<Standing, Incomplete>,
    hashes: Hashes,
    mut report: Report,
) -> MCPRemoteProxyStatus {
    let generation = proxy.metadata.generation;
    let mut status =
        MCPRemoteProxyStatus { observed_generation: generation, ..proxy.status.clone().unwrap_or_default() };
    status.keep_hashes(hashes);
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
    status.conditions = report.conditions(&status.conditions, &OWN, generation);
    status
}
