//! The tools that clients see, and under which names.

use skep_api::config::run_config::{RunConfig, ToolOverride};
use skep_api::kind::Kind as _;
use skep_api::kinds::MCPToolConfig;

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
