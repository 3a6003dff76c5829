//! What is written to the audit log.

use crate::config::document::object;
use crate::config::vmcp::audit::DEFAULT_MAX_DATA_SIZE;

object! {
    /// What is written to the audit log. Member names are in camel case.
    pub struct AuditConfig {
        omit component: String,
        /// Whether a JSON-RPC error in a successful response is told apart. Unset means yes.
        omit detect_application_errors: Option<bool> = "detectApplicationErrors",
        /// Written by other tools. An audit object alone turns auditing on.
        omit enabled: bool,
        /// Empty means all types.
        omit event_types: Vec<String> = "eventTypes",
        /// Wins over `event_types`.
        omit exclude_event_types: Vec<String> = "excludeEventTypes",
        omit include_request_data: bool = "includeRequestData",
        omit include_response_data: bool = "includeResponseData",
        /// Empty means standard output.
        omit log_file: String = "logFile",
        /// In bytes; 0 means [`DEFAULT_MAX_DATA_SIZE`].
        omit max_data_size: i64 = "maxDataSize",
        /// Unset means [`DEFAULT_MAX_DELEGATION_DEPTH`](crate::config::vmcp::audit::DEFAULT_MAX_DELEGATION_DEPTH).
        omit max_delegation_depth: Option<i64> = "maxDelegationDepth",
    }
}

impl AuditConfig {
    /// What the operator writes when auditing is on.
    pub fn standard() -> Self {
        Self { detect_application_errors: Some(true), max_data_size: DEFAULT_MAX_DATA_SIZE, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_is_what_the_reference_writes() {
        let expected = serde_json::json!({ "detectApplicationErrors": true, "maxDataSize": 1024 });
        assert_eq!(serde_json::to_value(AuditConfig::standard()).unwrap(), expected);
    }
}
