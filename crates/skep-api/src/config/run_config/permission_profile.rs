//! What a backend may touch. On Kubernetes the profile shapes no pod; it is validated and carried.

use crate::config::document::object;

object! {
    /// What a backend may touch.
    pub struct PermissionProfile {
        omit name: String,
        omit network: Option<NetworkPermissions>,
        omit privileged: bool,
        /// Read-only mounts: `path`, `host:container` or `scheme://name:container`.
        omit read: Vec<String>,
        /// Writable mounts, in the same forms.
        omit write: Vec<String>,
    }
}

object! {
    /// Where a backend may connect, and who may connect to it.
    pub struct NetworkPermissions {
        omit inbound: Option<InboundPermissions>,
        /// Empty, `bridge`, `default`, `host`, `none`, or a network of the container runtime.
        omit mode: String,
        omit outbound: Option<OutboundPermissions>,
    }
}

object! {
    /// Where a backend may connect.
    pub struct OutboundPermissions {
        omit allow_host: Vec<String>,
        omit allow_port: Vec<i32>,
        omit insecure_allow_all: bool,
    }
}

object! {
    /// Who may connect to a backend.
    pub struct InboundPermissions {
        omit allow_host: Vec<String>,
    }
}

impl PermissionProfile {
    pub const NONE: &str = "none";
    /// Another name of [`Self::NONE`].
    pub const STDIO: &str = "stdio";
    pub const NETWORK: &str = "network";

    /// The profile with a reserved name; `None` for names that mean a file.
    pub fn builtin(name: &str) -> Option<Self> {
        let allow_all = match name {
            Self::NONE | Self::STDIO => false,
            Self::NETWORK => true,
            _ => return None,
        };
        let outbound = OutboundPermissions { insecure_allow_all: allow_all, ..OutboundPermissions::default() };
        let network = NetworkPermissions { outbound: Some(outbound), ..NetworkPermissions::default() };
        let name = if allow_all { Self::NETWORK } else { Self::NONE };
        Some(Self { name: name.to_owned(), network: Some(network), ..Self::default() })
    }

    /// Whether the network mode is one that a proxy can stand in front of.
    pub fn allows_network_isolation(&self) -> bool {
        let mode = self.network.as_ref().map_or("", |network| network.mode.as_str());
        matches!(mode, "" | "bridge" | "default")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn builtin_profiles() {
        let network = PermissionProfile::builtin("network").unwrap();
        let expected = json!({ "name": "network", "network": { "outbound": { "insecure_allow_all": true } } });
        assert_eq!(serde_json::to_value(network).unwrap(), expected);
        assert_eq!(PermissionProfile::builtin("stdio"), PermissionProfile::builtin("none"));
        assert_eq!(PermissionProfile::builtin("/etc/toolhive/profiles/p.json"), None);
    }
}
