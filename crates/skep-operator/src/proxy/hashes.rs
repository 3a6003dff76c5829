//! The hashes that a workload copies from the objects that it names, and where its status keeps them.

use skep_api::kinds::mcp_remote_proxy::MCPRemoteProxyStatus;
use skep_api::kinds::mcp_server::MCPServerStatus;

/// A hash for every object that a workload can name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    pub auth_server: Option<String>,
    pub authz: Option<String>,
    pub external_auth: Option<String>,
    pub oidc: Option<String>,
    pub telemetry: Option<String>,
    pub tools: Option<String>,
    pub webhooks: Option<String>,
}

/// A status that has members for hashes.
pub trait KeepsHashes {
    /// Those that the last pass left.
    fn hashes(&self) -> Hashes;
    /// Leaves those of this pass.
    fn keep_hashes(&mut self, hashes: Hashes);
}

macro_rules! keeps_hashes {
    ($status:ty: $($hash:ident in $member:ident),+ $(,)?) => {
        impl KeepsHashes for $status {
            fn hashes(&self) -> Hashes {
                let mut hashes = Hashes::default();
                $(hashes.$hash.clone_from(&self.$member);)+
                hashes
            }

            fn keep_hashes(&mut self, hashes: Hashes) {
                $(self.$member = hashes.$hash;)+
            }
        }
    };
}

keeps_hashes! {
    MCPServerStatus: auth_server in auth_server_config_hash, authz in authz_config_hash,
        external_auth in external_auth_config_hash, oidc in oidc_config_hash, telemetry in telemetry_config_hash,
        tools in tool_config_hash, webhooks in webhook_config_hash,
}

keeps_hashes! {
    MCPRemoteProxyStatus: auth_server in auth_server_config_hash, authz in authz_config_hash,
        external_auth in external_auth_config_hash, oidc in oidc_config_hash, telemetry in telemetry_config_hash,
        tools in tool_config_hash,
}
