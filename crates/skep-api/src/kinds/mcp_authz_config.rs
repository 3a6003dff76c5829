//! MCPAuthzConfig: who may do what, for several workloads at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_status::{ConfigStatus, REFERENCES_COLUMN, VALID_COLUMN};
use crate::kind::{Column, Versions, kind};
use crate::raw::RawObject;

kind! {
    /// MCPAuthzConfig says who may do what. Workloads name it in their authzConfigRef, so that several of them can
    /// share one set of policies.
    MCPAuthzConfig(MCPAuthzConfigSpec, ConfigStatus) {
        plural: "mcpauthzconfigs",
        short_names: &["authzcfg"],
        versions: Versions::BetaAndDeprecatedAlpha,
        columns: &[Column::string("Type", ".spec.type"), VALID_COLUMN, REFERENCES_COLUMN, Column::AGE],
        scale: None,
    }
}

/// Policies, in the form that the authorizer of the given type takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MCPAuthzConfigSpec {
    /// The settings of the authorizer, which depend on type.
    ///
    /// For cedarv1: policies (a list of Cedar policies, at least one), entities_json (Cedar entities as a JSON
    /// array), group_claim_name and role_claim_name (the claims that list a user's groups and roles),
    /// group_entity_type (the Cedar entity type of groups) and multi_valued_claims (claims to read as lists).
    ///
    /// For httpv1: http (url, timeout and insecure_skip_verify of the decision point), context (include_args,
    /// include_operation) and claim_mapping (standard or mpe).
    pub config: RawObject,
    /// The authorizer: cedarv1 for Cedar policies that are evaluated in the proxy, httpv1 for a decision point that
    /// is asked over HTTP. VirtualMCPServer takes only cedarv1.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub type_: String,
}
