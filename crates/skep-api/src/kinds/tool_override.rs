//! How a tool is shown to clients when that differs from how its server describes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::raw::RawObject;

/// What clients see of a tool instead of what its server says. Members that are left out stay as the server has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOverride {
    /// Hints about the tool's behaviour. Each that is set replaces the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// The description that clients and models read instead of the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name under which clients see and call the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// Hints about a tool, as MCP defines them. A hint that is left out stays as the server has it; false is a value
/// of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// Whether the tool may destroy or overwrite something. Only of interest for tools that change things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether calling the tool again with the same arguments changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether the tool deals with things beyond its server's own data, such as the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Whether the tool only reads and never changes anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// A title for people. An empty text is a value too and hides the server's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn false_and_empty_are_not_the_same_as_absent() {
        let written = json!({ "annotations": { "readOnlyHint": false, "title": "" } });
        let read: ToolOverride = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), written);
    }
}
