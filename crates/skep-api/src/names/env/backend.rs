//! What the containers read that Skep starts but did not write.

use crate::constants::constants;

constants! {
    // MCP servers; these overwrite what the user sets.

    /// The transport to serve.
    pub const MCP_TRANSPORT: &str = "MCP_TRANSPORT";
    /// The port to listen on, for HTTP transports.
    pub const MCP_PORT: &str = "MCP_PORT";
    /// [`MCP_PORT`] as one popular framework calls it.
    pub const FASTMCP_PORT: &str = "FASTMCP_PORT";
    /// The address to listen on, for HTTP transports.
    pub const MCP_HOST: &str = "MCP_HOST";

    // Registry API server.

    /// The password file.
    pub const PGPASSFILE: &str = "PGPASSFILE";

    // Embedding server.

    /// The model to serve.
    pub const MODEL_ID: &str = "MODEL_ID";
    /// The token for gated models.
    pub const HF_TOKEN: &str = "HF_TOKEN";
    /// Where models are kept, when there is a cache.
    pub const HF_HOME: &str = "HF_HOME";
}
