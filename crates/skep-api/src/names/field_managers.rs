//! Who owns fields that are written by server-side apply.

/// The proxy runner, for the StatefulSet and Services of the backend. It forces its fields.
pub const PROXY_RUNNER: &str = "toolhive-container-manager";

/// Proxies, for what they tell each other about sessions: it is no part of what a StatefulSet is to be.
pub const SESSIONS: &str = "skep-proxy-sessions";

/// The operator, for everything that it creates for an object.
pub const OPERATOR: &str = "skep-operator";

/// The operator, for the stamp that restarts pods: it is no part of what the operator wants an object to be.
pub const RESTART: &str = "skep-operator-restart";
