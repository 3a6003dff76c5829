//! Who owns fields that are written by server-side apply.

/// The proxy runner, for the StatefulSet and Services of the backend. It forces its fields.
pub const PROXY_RUNNER: &str = "toolhive-container-manager";
