//! What is recorded, and where.

use std::collections::HashSet;
use std::path::PathBuf;

/// The types of events that can be asked for, and left out.
const TYPES: [&str; 23] = [
    "mcp_initialize",
    "mcp_tool_call",
    "mcp_tools_list",
    "mcp_resource_read",
    "mcp_resources_list",
    "mcp_prompt_get",
    "mcp_prompts_list",
    "mcp_notification",
    "mcp_ping",
    "mcp_logging",
    "mcp_completion",
    "mcp_roots_list_changed",
    "sse_connection",
    "mcp_request",
    "http_request",
    "vmcp_workflow_started",
    "vmcp_workflow_completed",
    "vmcp_workflow_failed",
    "vmcp_workflow_timed_out",
    "vmcp_workflow_step_started",
    "vmcp_workflow_step_completed",
    "vmcp_workflow_step_failed",
    "vmcp_workflow_step_skipped",
];

/// What is recorded, and where.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// Who records.
    pub component: String,
    /// What the server speaks.
    pub transport: String,
    /// The types to record; all of them when there are none.
    pub types: HashSet<String>,
    /// The types to leave out, whatever else is said.
    pub excluded: HashSet<String>,
    /// Whether what clients and servers say is recorded, too.
    pub has_requests: bool,
    pub has_answers: bool,
    /// Whether an error that an answer holds is told apart from a success.
    pub detects_errors: bool,
    /// How much of what somebody says is recorded, in bytes.
    pub data_bytes: usize,
    /// How many of those who act for each other are recorded.
    pub hops: usize,
    /// Where to; standard output when there is none.
    pub file: Option<PathBuf>,
    /// Whether what stands before the proxy is believed about who came.
    pub trusts_forwarded: bool,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            component: "toolhive-api".to_owned(),
            transport: String::new(),
            types: HashSet::new(),
            excluded: HashSet::new(),
            has_requests: false,
            has_answers: false,
            detects_errors: true,
            data_bytes: 1024,
            hops: 10,
            file: None,
            trusts_forwarded: false,
        }
    }
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// There is no such type of event.
    #[error("there is no event type {0:?}")]
    Type(String),
    /// The file cannot be written.
    #[error("logFile {file} cannot be written: {cause}")]
    File { file: String, cause: String },
    /// There is nobody who could write.
    #[error("no thread for audit records: {0}")]
    Thread(String),
}

impl AuditSettings {
    pub(super) fn check(&self) -> Result<(), AuditError> {
        let unknown = self.types.iter().chain(&self.excluded).find(|kind| !TYPES.contains(&kind.as_str()));
        unknown.map_or(Ok(()), |kind| Err(AuditError::Type(kind.clone())))
    }

    pub(super) fn records(&self, kind: &str) -> bool {
        !self.excluded.contains(kind) && (self.types.is_empty() || self.types.contains(kind))
    }
}
