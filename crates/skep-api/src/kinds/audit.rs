//! Whether requests are recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether requests are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// Whether an audit event is written for every request.
    #[serde(default)]
    pub enabled: bool,
}
