//! How tools are shown.

use crate::config::document::object;

object! {
    /// How a tool is shown.
    pub struct ToolOverride {
        /// Not in the reference.
        omit annotations: Option<ToolAnnotations>,
        omit description: String,
        omit name: String,
    }
}

object! {
    /// Hints about a tool, as MCP calls them. One that is left out stays as the server has it; false and an empty title are
    /// values.
    pub struct ToolAnnotations {
        omit destructive_hint: Option<bool> = "destructiveHint",
        omit idempotent_hint: Option<bool> = "idempotentHint",
        omit open_world_hint: Option<bool> = "openWorldHint",
        omit read_only_hint: Option<bool> = "readOnlyHint",
        omit title: Option<String>,
    }
}
