//! The status of a workload, from what a pass found out.

use skep_api::conditions::{Condition, Statement, types};
use skep_api::kind::Kind;
use skep_api::kinds::mcp_remote_proxy::{MCPRemoteProxyPhase, MCPRemoteProxyStatus};
use skep_api::kinds::mcp_server::{MCPServerPhase, MCPServerStatus};

use super::Proxied;
use super::build::Incomplete;
use super::hashes::Hashes;
use super::inputs::conditions_with_input;
use super::report::Report;

/// Where a workload stands whose objects are all in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing<P> {
    /// Its life in one word.
    pub phase: P,
    /// What `status.message` says.
    pub message: String,
    /// The condition `Ready`.
    pub verdict: Statement,
}

/// The status of a kind that has a proxy.
pub trait WorkloadStatus: Clone + Default {
    type Phase;
    const PENDING: Self::Phase;
    const FAILED: Self::Phase;

    /// The hashes that the last pass left.
    fn hashes(&self) -> Hashes;
    /// Leaves those of this pass.
    fn keep_hashes(&mut self, hashes: Hashes);
    /// What every such status has.
    fn members(&mut self) -> Members<'_, Self::Phase>;
}

/// Members that the statuses of all workloads have, hashes aside.
#[derive(Debug)]
pub struct Members<'a, P> {
    conditions: &'a mut Vec<Condition>,
    message: &'a mut Option<String>,
    observed_generation: &'a mut Option<i64>,
    phase: &'a mut Option<P>,
    url: &'a mut Option<String>,
}

macro_rules! workload_status {
    ($status:ty, $phase:ty: $($hash:ident in $member:ident),+ $(,)?) => {
        impl WorkloadStatus for $status {
            type Phase = $phase;
            const PENDING: $phase = <$phase>::Pending;
            const FAILED: $phase = <$phase>::Failed;

            fn hashes(&self) -> Hashes {
                let mut hashes = Hashes::default();
                $(hashes.$hash.clone_from(&self.$member);)+
                hashes
            }

            fn keep_hashes(&mut self, hashes: Hashes) {
                $(self.$member = hashes.$hash;)+
            }

            fn members(&mut self) -> Members<'_, $phase> {
                Members {
                    conditions: &mut self.conditions,
                    message: &mut self.message,
                    observed_generation: &mut self.observed_generation,
                    phase: &mut self.phase,
                    url: &mut self.url,
                }
            }
        }
    };
}

workload_status! {
    MCPServerStatus, MCPServerPhase: auth_server in auth_server_config_hash, authz in authz_config_hash,
        external_auth in external_auth_config_hash, oidc in oidc_config_hash, telemetry in telemetry_config_hash,
        tools in tool_config_hash, webhooks in webhook_config_hash,
}

workload_status! {
    MCPRemoteProxyStatus, MCPRemoteProxyPhase: auth_server in auth_server_config_hash, authz in authz_config_hash,
        external_auth in external_auth_config_hash, oidc in oidc_config_hash, telemetry in telemetry_config_hash,
        tools in tool_config_hash,
}

/// How a pass ended.
pub type Outcome<O> = Result<Standing<<<O as Kind>::Status as WorkloadStatus>::Phase>, Incomplete>;

/// The status after a pass. `status` is the one before it, with what only the kind has.
pub fn conclude<O: Proxied>(
    object: &O,
    mut status: O::Status,
    outcome: Outcome<O>,
    hashes: Hashes,
    mut report: Report,
) -> O::Status {
    status.keep_hashes(hashes);
    let generation = object.meta().generation;
    let members = status.members();
    *members.observed_generation = generation;
    match outcome {
        Ok(standing) => {
            report.say(standing.verdict);
            *members.phase = Some(standing.phase);
            *members.message = Some(standing.message);
            *members.url = Some(object.url());
        }
        Err(incomplete) => {
            conditions_with_input(object.common(), object.target()).for_each(|type_| report.keep(type_));
            report.say(Statement::fails(types::READY, incomplete.reason, incomplete.text));
            *members.phase = Some(if incomplete.is_pending { O::Status::PENDING } else { O::Status::FAILED });
            if let Some(message) = incomplete.message {
                *members.message = Some(message);
            }
        }
    }
    *members.conditions = report.conditions(members.conditions, O::CONDITIONS, generation);
    status
}
