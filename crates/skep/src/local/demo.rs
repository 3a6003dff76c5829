//! What is there to try when nothing else is asked for: an MCP server that needs no network.

/// The example for people is the demo, so that both stay true.
pub(super) const MANIFEST: &str = include_str!("../../../../examples/echo.yaml");
