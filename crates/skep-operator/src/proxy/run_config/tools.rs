//! The tools that clients see, under which names, and what is said about them.

use skep_api::config::run_config::{RunConfig, ToolAnnotations, ToolOverride};
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPToolConfig;
use skep_api::kinds::tool_override;

use super::{named, text};
use crate::proxy::Inputs;

pub(super) fn show(inputs: &Inputs<'_>, config: &mut RunConfig) -> Result<(), String> {
    let reference = inputs.common.tool_config_ref;
    let Some(object) = named(MCPToolConfig::DEFINITION.kind, reference, inputs.resolved.tools.as_ref())? else {
        return Ok(());
    };
    config.tools_filter.clone_from(&object.spec.tools_filter);
    for (tool, shown) in &object.spec.tools_override {
        let shown = ToolOverride {
            annotations: shown.annotations.as_ref().map(annotations).filter(|all| *all != ToolAnnotations::default()),
            description: text(shown.description.as_deref()),
            name: text(shown.name.as_deref()),
            ..ToolOverride::default()
        };
        if shown == ToolOverride::default() {
            return Err(format!(
                "failed to validate run config: tool override for {tool} must have either Name or Description set"
            ));
        }
        config.tools_override.insert(tool.clone(), shown);
    }
    Ok(())
}

fn annotations(shown: &tool_override::ToolAnnotations) -> ToolAnnotations {
    ToolAnnotations {
        destructive_hint: shown.destructive_hint,
        idempotent_hint: shown.idempotent_hint,
        open_world_hint: shown.open_world_hint,
        read_only_hint: shown.read_only_hint,
        title: shown.title.clone(),
        ..ToolAnnotations::default()
    }
}
