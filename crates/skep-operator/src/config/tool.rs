//! MCPToolConfig is always valid: its schema says all there is to say.

use skep_api::kinds::MCPToolConfig;
use skep_api::names::finalizers;

use super::{Complaint, ConfigKind};

impl ConfigKind for MCPToolConfig {
    const FINALIZER: &'static str = finalizers::MCP_TOOL_CONFIG;

    fn judge(&self) -> Result<(), Complaint> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skep_api::kinds::MCPToolConfig;

    use crate::config::judge;

    #[test]
    fn every_spec_is_valid() {
        let both_empty = json!({"toolsOverride": {"a": {"name": "", "description": ""}}});
        judge::<MCPToolConfig>([
            (json!({}), ""),
            (json!({"toolsFilter": ["a"], "toolsOverride": {"a": {"name": "b"}}}), ""),
            (both_empty, ""),
        ]);
    }
}
