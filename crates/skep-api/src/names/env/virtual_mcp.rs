//! What only the vMCP process reads.

use crate::constants::constants;

constants! {
    /// The name of the VirtualMCPServer.
    pub const NAME: &str = "VMCP_NAME";
    /// The namespace of the VirtualMCPServer.
    pub const NAMESPACE: &str = "VMCP_NAMESPACE";
    /// The client secret for token introspection. Proxy pods have another name for it.
    pub const OIDC_CLIENT_SECRET: &str = "VMCP_OIDC_CLIENT_SECRET";
    /// The key that binds sessions.
    pub const SESSION_HMAC_SECRET: &str = "VMCP_SESSION_HMAC_SECRET";
    /// The key for an embedding service that speaks the OpenAI protocol.
    pub const OPENAI_API_KEY: &str = "OPENAI_API_KEY";
}
