//! How many requests are let through.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on the number of tool calls, as token buckets. All that apply to a call must have a token left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.shared) || has(self.perUser) || (has(self.tools) && size(self.tools) > 0)",
        "message": "at least one of shared, perUser, or tools must be configured",
    },
]))]
pub struct RateLimiting {
    /// One bucket for each user. Needs authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_user: Option<TokenBucket>,
    /// One bucket for all users together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<TokenBucket>,
    /// Further limits for single tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub tools: Vec<ToolRateLimit>,
}

/// The limits of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    { "rule": "has(self.shared) || has(self.perUser)", "message": "at least one of shared or perUser must be configured" },
]))]
pub struct ToolRateLimit {
    /// The name of the tool.
    #[schemars(length(min = 1))]
    pub name: String,
    /// One bucket for each user. Needs authentication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_user: Option<TokenBucket>,
    /// One bucket for all users together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<TokenBucket>,
}

/// A bucket that holds some number of tokens and fills again within a period. A call takes one token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenBucket {
    /// How many tokens the bucket holds.
    #[schemars(range(min = 1))]
    pub max_tokens: i32,
    /// How long an empty bucket takes to fill up, for example `1m0s`.
    pub refill_period: String,
}
