//! What each kind names in its spec, always in its own namespace.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use skep_api::kind::Kind;
use skep_api::kinds::authz::AuthzConfig;
use skep_api::kinds::ca_bundle::CABundleRef;
use skep_api::kinds::mcp_server::PermissionProfileSource;
use skep_api::kinds::references::AuthServerKind;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPServerEntry,
    MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPServer,
};

use crate::id::ObjectId;
use crate::proxy::{Common, Proxied as _};

/// The kind of ConfigMaps in the index.
pub(super) const CONFIG_MAP: &str = "ConfigMap";

/// A kind whose objects can name others.
pub trait Refers: Kind {
    /// Every object that this one names.
    fn targets(&self) -> BTreeSet<ObjectId>;
}

/// Collects names; absent and empty ones are nobody's.
struct Targets<'a> {
    namespace: &'a str,
    found: BTreeSet<ObjectId>,
}

impl<'a> Targets<'a> {
    fn new(namespace: &'a str) -> Self {
        Self { namespace, found: BTreeSet::new() }
    }

    /// What every workload with a proxy can name.
    fn of(common: Common<'a>) -> Self {
        let auth_server = common.auth_server_ref.filter(|found| found.kind == AuthServerKind::MCPExternalAuthConfig);
        Self::new(common.namespace)
            .authz(common.authz_config, common.authz_config_ref)
            .add::<MCPExternalAuthConfig>(common.external_auth_config_ref)
            .add::<MCPExternalAuthConfig>(auth_server.map(|found| found.name.as_str()))
            .add::<MCPGroup>(common.group_ref)
            .add::<MCPOIDCConfig>(common.oidc_config_ref.map(|found| found.name.as_str()))
            .add::<MCPTelemetryConfig>(common.telemetry_config_ref.map(|found| found.name.as_str()))
            .add::<MCPToolConfig>(common.tool_config_ref)
    }

    fn add<K: Kind>(self, name: Option<&str>) -> Self {
        self.kind(K::DEFINITION.kind, name)
    }

    fn kind(mut self, kind: &'static str, name: Option<&str>) -> Self {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.found.insert(ObjectId::new(kind, self.namespace, name));
        }
        self
    }

    fn authz(self, inline: Option<&AuthzConfig>, name: Option<&str>) -> Self {
        let config_map = inline.and_then(|authz| authz.config_map.as_ref()).map(|found| found.name.as_str());
        self.kind(CONFIG_MAP, config_map).add::<MCPAuthzConfig>(name)
    }

    fn bundle(self, bundle: Option<&CABundleRef>) -> Self {
        let config_map = bundle.and_then(|bundle| bundle.config_map_ref.as_ref()).map(|found| found.name.as_str());
        self.kind(CONFIG_MAP, config_map)
    }
}

impl Refers for MCPServer {
    fn targets(&self) -> BTreeSet<ObjectId> {
        let webhooks = self.spec.webhook_config_ref.as_ref().map(|found| found.name.as_str());
        let profile = self.spec.permission_profile.as_ref();
        let profile = profile.filter(|profile| profile.type_ == PermissionProfileSource::ConfigMap);
        let profile = profile.map(|profile| profile.name.as_str());
        Targets::of(self.common()).kind(CONFIG_MAP, profile).add::<MCPWebhookConfig>(webhooks).found
    }
}

impl Refers for MCPRemoteProxy {
    fn targets(&self) -> BTreeSet<ObjectId> {
        Targets::of(self.common()).found
    }
}

impl Refers for VirtualMCPServer {
    fn targets(&self) -> BTreeSet<ObjectId> {
        let spec = &self.spec;
        let namespace = self.namespace().unwrap_or_default();
        let incoming = &spec.incoming_auth;
        let mut targets = Targets::new(&namespace)
            .add::<MCPGroup>(Some(&spec.group_ref.name))
            .authz(incoming.authz_config.as_ref(), incoming.authz_config_ref.as_ref().map(|found| found.name.as_str()))
            .add::<MCPOIDCConfig>(incoming.oidc_config_ref.as_ref().map(|found| found.name.as_str()))
            .add::<MCPTelemetryConfig>(spec.telemetry_config_ref.as_ref().map(|found| found.name.as_str()));
        if let Some(outgoing) = &spec.outgoing_auth {
            for backend in outgoing.default.iter().chain(outgoing.backends.values()) {
                let name = backend.external_auth_config_ref.as_ref().map(|found| found.name.as_str());
                targets = targets.add::<MCPExternalAuthConfig>(name);
            }
        }
        let aggregation = spec.config.as_ref().and_then(|config| config.aggregation.as_ref());
        for tools in aggregation.into_iter().flat_map(|aggregation| &aggregation.tools) {
            targets = targets.add::<MCPToolConfig>(tools.tool_config_ref.as_ref().map(|found| found.name.as_str()));
        }
        targets.found
    }
}

impl Refers for MCPServerEntry {
    fn targets(&self) -> BTreeSet<ObjectId> {
        let spec = &self.spec;
        Targets::new(&self.namespace().unwrap_or_default())
            .add::<MCPGroup>(Some(&spec.group_ref.name))
            .add::<MCPExternalAuthConfig>(spec.external_auth_config_ref.as_ref().map(|found| found.name.as_str()))
            .bundle(spec.ca_bundle_ref.as_ref())
            .found
    }
}

impl Refers for MCPOIDCConfig {
    fn targets(&self) -> BTreeSet<ObjectId> {
        let bundle = self.spec.inline.as_ref().and_then(|inline| inline.ca_bundle_ref.as_ref());
        Targets::new(&self.namespace().unwrap_or_default()).bundle(bundle).found
    }
}

impl Refers for MCPTelemetryConfig {
    fn targets(&self) -> BTreeSet<ObjectId> {
        let bundle = self.spec.open_telemetry.as_ref().and_then(|telemetry| telemetry.ca_bundle_ref.as_ref());
        Targets::new(&self.namespace().unwrap_or_default()).bundle(bundle).found
    }
}

macro_rules! names_nobody {
    ($($kind:ty),+) => {
        $(impl Refers for $kind {
            fn targets(&self) -> BTreeSet<ObjectId> {
                BTreeSet::new()
            }
        })+
    };
}

names_nobody!(MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPToolConfig, MCPWebhookConfig);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn named<K: Refers>(spec: &Value) -> Vec<String> {
        let object: K =
            serde_json::from_value(json!({"metadata": {"namespace": "ns", "name": "o"}, "spec": spec})).unwrap();
        object.targets().iter().map(|target| format!("{} {}", target.kind, target.key.name)).collect()
    }

    #[test]
    fn every_reference_is_found() {
        let shared = json!({"image": "i", "remoteUrl": "u",
            "authzConfig": {"type": "configMap", "configMap": {"name": "policies"}}, "authzConfigRef": {"name": "z"},
            "externalAuthConfigRef": {"name": "e"}, "authServerRef": {"name": "a"}, "groupRef": {"name": "g"},
            "oidcConfigRef": {"name": "o", "audience": "x"}, "telemetryConfigRef": {"name": "t"},
            "toolConfigRef": {"name": "f"}, "webhookConfigRef": {"name": "w"},
            "permissionProfile": {"type": "configmap", "name": "profile", "key": "p"}});
        let mut expected = vec![
            "ConfigMap policies",
            "ConfigMap profile",
            "MCPAuthzConfig z",
            "MCPExternalAuthConfig a",
            "MCPExternalAuthConfig e",
            "MCPGroup g",
            "MCPOIDCConfig o",
            "MCPTelemetryConfig t",
            "MCPToolConfig f",
            "MCPWebhookConfig w",
        ];
        assert_eq!(named::<MCPServer>(&shared), expected);
        expected.retain(|name| !["ConfigMap profile", "MCPWebhookConfig w"].contains(name));
        assert_eq!(named::<MCPRemoteProxy>(&shared), expected);
        let aggregate = json!({"groupRef": {"name": "g"}, "telemetryConfigRef": {"name": "t"},
            "incomingAuth": {"type": "oidc", "oidcConfigRef": {"name": "o", "audience": "x"}, "authzConfigRef": {"name": "z"}},
            "outgoingAuth": {"default": {"type": "externalAuthConfigRef", "externalAuthConfigRef": {"name": "d"}},
                "backends": {"b": {"type": "externalAuthConfigRef", "externalAuthConfigRef": {"name": "e"}}}},
            "config": {"aggregation": {"tools": [{"workload": "b", "toolConfigRef": {"name": "f"}}]}}});
        let expected = [
            "MCPAuthzConfig z",
            "MCPExternalAuthConfig d",
            "MCPExternalAuthConfig e",
            "MCPGroup g",
            "MCPOIDCConfig o",
            "MCPTelemetryConfig t",
            "MCPToolConfig f",
        ];
        assert_eq!(named::<VirtualMCPServer>(&aggregate), expected);
        let entry = json!({"groupRef": {"name": "g"}, "remoteUrl": "u", "transport": "sse",
            "externalAuthConfigRef": {"name": ""}, "caBundleRef": {"configMapRef": {"name": "c", "key": "k"}}});
        assert_eq!(named::<MCPServerEntry>(&entry), ["ConfigMap c", "MCPGroup g"]);
        let issuer = json!({"type": "inline", "inline": {"issuer": "i", "caBundleRef": {"configMapRef": {"name": "c", "key": "k"}}}});
        assert_eq!(named::<MCPOIDCConfig>(&issuer), ["ConfigMap c"]);
    }
}
