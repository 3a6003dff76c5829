//! How the capabilities of many backends become one list.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::document::null_is_empty;
use crate::kinds::references::LooseObjectRef;
use crate::kinds::tool_override::ToolOverride;
use crate::raw::RawObject;

/// What a tool's name begins with when nothing else is said.
pub const DEFAULT_PREFIX_FORMAT: &str = "{workload}_";

/// How the tools, resources and prompts of all backends become one list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Aggregation {
    /// What happens when two backends offer a tool of the same name. Defaults to prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ConflictResolution::default()))]
    pub conflict_resolution: Option<ConflictResolution>,
    /// Details of the chosen way to resolve conflicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict_resolution_config: Option<ConflictResolutionConfig>,
    /// Whether the tools of backends that are not listed in tools are shown to clients. Without a value they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_tool_visibility: Option<ToolVisibility>,
    /// Whether all tools of all backends are hidden from clients. Composite tools can still call them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_all_tools: Option<bool>,
    /// What to do with the tools of single backends.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<WorkloadTools>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

impl Aggregation {
    /// The way in which conflicts are resolved, given or by default.
    pub fn conflict_resolution(&self) -> ConflictResolution {
        self.conflict_resolution.unwrap_or_default()
    }
}

/// Ways to resolve a conflict of names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConflictResolution {
    /// Every tool gets a prefix made of its backend's name.
    #[default]
    Prefix,
    /// Names stay as they are. Of several backends with the same name the one that stands first in priorityOrder
    /// wins and the others lose that tool; where none of them is listed, each gets a prefix.
    Priority,
    /// Names stay as they are. Every conflict has to be settled with an override in tools; while one is left,
    /// clients are not served.
    Manual,
}

/// Details of a way to resolve conflicts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConflictResolutionConfig {
    /// What is put in front of a tool's name when conflictResolution is prefix. `{workload}` stands for the name
    /// of the backend. Defaults to `{workload}_`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_PREFIX_FORMAT))]
    pub prefix_format: Option<String>,
    /// The names of backends, the most important first. Required when conflictResolution is priority.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub priority_order: Vec<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// Whether tools are shown unless something else is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolVisibility {
    /// Tools are shown.
    #[default]
    Allow,
    /// Tools are hidden.
    Deny,
}

/// What to do with the tools of one backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadTools {
    /// Whether all tools of this backend are hidden from clients. Composite tools can still call them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_all: Option<bool>,
    /// The tools that are shown to clients, by their names after overrides and before a prefix. An empty list shows
    /// all. Composite tools can still call the others.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<String>,
    /// Other names, descriptions or annotations for tools, by the names that the backend gives them.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, ToolOverride>,
    /// The MCPToolConfig that gives the filter and the overrides that are not given here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_config_ref: Option<LooseObjectRef>,
    /// The name of the backend.
    pub workload: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}
