//! What is recorded of each request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::raw::RawObject;

/// How many bytes of a request or an answer are recorded when nothing else is said, here and in a RunConfig.
pub const DEFAULT_MAX_DATA_SIZE: i64 = 1024;
/// How many links of a chain of delegation are recorded when nothing else is said, here and in a RunConfig.
pub const DEFAULT_MAX_DELEGATION_DEPTH: i64 = 10;

/// Whether and how requests are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditSettings {
    /// The name of this server in audit events. Defaults to the name of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Whether an answer that carries an error of the application counts as a failure although HTTP says
    /// otherwise. Defaults to true.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub detect_application_errors: Option<bool>,
    /// Whether audit events are written. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub enabled: Option<bool>,
    /// The types of events that are written. An empty list means all.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub event_types: Vec<String>,
    /// The types of events that are left out. It wins over eventTypes.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub exclude_event_types: Vec<String>,
    /// Whether events carry what was asked, up to maxDataSize. It may hold private data. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub include_request_data: Option<bool>,
    /// Whether events carry what was answered, up to maxDataSize. It may hold private data. Defaults to false.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub include_response_data: Option<bool>,
    /// The file that events are appended to. Without it they go to the standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_file: Option<String>,
    /// How many bytes of a request or an answer an event carries at most. Defaults to 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null, "default" = DEFAULT_MAX_DATA_SIZE))]
    pub max_data_size: Option<i64>,
    /// How many links of a chain of delegation an event carries at most. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("format" = null, "default" = DEFAULT_MAX_DELEGATION_DEPTH))]
    pub max_delegation_depth: Option<i64>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
