//! What is there to try when nothing else is asked for: an MCP server that needs no network.

use skep_node::isolation::Isolation;

/// The examples for people are the demo, so that both stay true. Without namespaces a proxy has no way to the API
/// server, so that the server is there without one.
pub(super) fn manifest(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Namespaces => include_str!("../../../../examples/echo.yaml"),
        Isolation::None => include_str!("../../../../examples/deployment.yaml"),
    }
}
