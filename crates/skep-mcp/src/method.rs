//! The methods that an intermediary has to know.

use crate::message::Param;

pub const INITIALIZE: &str = "initialize";
pub const DISCOVER: &str = "server/discover";
pub const PING: &str = "ping";
pub const TOOLS_LIST: &str = "tools/list";
pub const TOOLS_CALL: &str = "tools/call";
pub const PROMPTS_LIST: &str = "prompts/list";
pub const PROMPTS_GET: &str = "prompts/get";
pub const RESOURCES_LIST: &str = "resources/list";
pub const TEMPLATES_LIST: &str = "resources/templates/list";
pub const RESOURCES_READ: &str = "resources/read";
pub const SUBSCRIBE: &str = "resources/subscribe";
pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
pub const COMPLETE: &str = "completion/complete";
pub const SET_LOG_LEVEL: &str = "logging/setLevel";
/// What the methods about tasks begin with.
pub const TASKS: &str = "tasks/";
pub const LISTEN: &str = "subscriptions/listen";

pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
pub const INITIALIZED: &str = "notifications/initialized";
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
pub const CANCELLED: &str = "notifications/cancelled";
pub const PROGRESS: &str = "notifications/progress";
pub const LOG_MESSAGE: &str = "notifications/message";
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
pub const LISTS_CHANGED: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/prompts/list_changed"];

/// Whether requests that stand alone no longer have this method.
pub fn is_only_legacy(method: &str) -> bool {
    matches!(method, INITIALIZE | PING | SET_LOG_LEVEL | SUBSCRIBE | UNSUBSCRIBE | "tasks/list" | "tasks/result")
}

/// The parameter that says what a request is about, and that the header `Mcp-Name` repeats.
pub fn subject(method: &str) -> Option<Param> {
    match method {
        TOOLS_CALL | PROMPTS_GET => Some(Param::Name),
        RESOURCES_READ => Some(Param::Uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(Param::TaskId),
        _ => None,
    }
}
