//! What the keys in Redis begin with. Braces are literal: they keep the keys of one workload in one hash slot.

/// Sessions of the proxy runner, unless the workload sets a prefix. Prefixes end with a colon.
pub const PROXY_SESSIONS: &str = "thv:proxy:session:";
/// Sessions of the vMCP process, unless the workload sets a prefix. Prefixes end with a colon.
pub const VIRTUAL_MCP_SESSIONS: &str = "thv:vmcp:session:";

/// State of the embedded auth server of a workload.
pub fn auth_server(namespace: &str, workload: &str) -> String {
    format!("thv:auth:{{{namespace}:{workload}}}:")
}

/// Buckets of the rate limiter of a server.
pub fn rate_limits(namespace: &str, server: &str) -> String {
    format!("thv:rl:{{{namespace}:{server}}}:")
}
