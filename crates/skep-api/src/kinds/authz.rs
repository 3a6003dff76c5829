//! Who may do what, as a workload says it itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// A Cedar policy, given here or in a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type == 'configMap' ? has(self.configMap) : !has(self.configMap)",
        "message": "configMap must be set when type is 'configMap', and must not be set otherwise",
    },
    {
        "rule": "self.type == 'inline' ? has(self.inline) : !has(self.inline)",
        "message": "inline must be set when type is 'inline', and must not be set otherwise",
    },
]))]
pub struct AuthzConfig {
    /// The ConfigMap that holds the policy. Set it when type is configMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<AuthzConfigMap>,
    /// The claim of a token that lists the groups of its user. A value here wins over the one in a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group_claim_name: Option<String>,
    /// The Cedar entity type that groups have in the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub group_entity_type: Option<String>,
    /// The policy itself. Set it when type is inline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inline: Option<InlineAuthz>,
    /// The claim of a token that lists the roles of its user. A value here wins over the one in a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub role_claim_name: Option<String>,
    /// Where the policy is found.
    #[serde(rename = "type", default)]
    #[schemars(extend("x-skep-required" = true))]
    pub type_: AuthzSource,
}

/// Places where a policy can be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuthzSource {
    /// In a ConfigMap.
    #[default]
    ConfigMap,
    /// In this object.
    Inline,
}

/// A ConfigMap that holds a policy document, as JSON or YAML.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthzConfigMap {
    /// The key within the ConfigMap's data.
    #[serde(default = "default_authz_key")]
    #[default(default_authz_key())]
    pub key: String,
    /// The name of the ConfigMap.
    pub name: String,
}

/// The key of a policy in a ConfigMap when none is named.
pub const DEFAULT_AUTHZ_KEY: &str = "authz.json";

fn default_authz_key() -> String {
    DEFAULT_AUTHZ_KEY.to_owned()
}

/// A Cedar policy as text.
#[derive(Clone, Debug, SmartDefault, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineAuthz {
    /// Cedar entities as a JSON array.
    #[serde(default = "no_entities")]
    #[default(no_entities())]
    pub entities_json: String,
    /// The Cedar policies. What none of them permits is forbidden.
    #[schemars(length(min = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub policies: Vec<String>,
    /// Deprecated and without effect except in a VirtualMCPServer, where authServerConfig.primaryUpstreamProvider
    /// takes its place: the upstream identity provider whose claims the policies see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub primary_upstream_provider: Option<String>,
}

fn no_entities() -> String {
    "[]".to_owned()
}
