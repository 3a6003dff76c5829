//! Scripts that call several tools in one go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::DurationText;
use crate::raw::RawObject;

/// How many calls a script may have under way at once when nothing else is said.
pub const DEFAULT_PARALLEL_MAX_CONCURRENCY: i64 = 10;
/// How many steps a script may take when nothing else is said.
pub const DEFAULT_STEP_LIMIT: i64 = 100_000;
/// How long a call from a script may take when nothing else is said.
pub const DEFAULT_TOOL_CALL_TIMEOUT: &str = "30s";

/// A tool with which clients run scripts that call several tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeMode {
    /// Whether the tool `execute_tool_script` is offered beside the others. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How many calls a script may have under way at once. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("format" = null, "default" = DEFAULT_PARALLEL_MAX_CONCURRENCY))]
    pub parallel_max_concurrency: Option<i64>,
    /// How many steps a script may take before it is stopped. Defaults to 100000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = DEFAULT_STEP_LIMIT))]
    pub step_limit: Option<i64>,
    /// How long a single call from a script may take. Defaults to 30s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_TOOL_CALL_TIMEOUT))]
    pub tool_call_timeout: Option<DurationText>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
