//! What must hold for every kind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::audit::Audit;
use super::auth_server::EmbeddedAuthServer;
use super::auth_server::clients::ClientMetadataDocuments;
use super::auth_server::storage::{AuthServerStorage, RedisSentinel, RedisStorage, SentinelService};
use super::auth_server::trusted_issuer::TrustedIssuer;
use super::authz::{AuthzConfig, AuthzConfigMap, InlineAuthz};
use super::ca_bundle::ConfigMapKeySelector;
use super::embedding_server::{EmbeddingServerSpec, ModelCache};
use super::mcp_oidc_config::{InlineOIDC, KubernetesServiceAccountOIDC};
use super::mcp_remote_proxy::MCPRemoteProxySpec;
use super::mcp_server::{HostVolume, MCPServerSpec, PermissionProfile};
use super::mcp_server_entry::MCPServerEntrySpec;
use super::mcp_telemetry_config::{OpenTelemetry, OpenTelemetryMetrics, OpenTelemetryTracing, Prometheus};
use super::mcp_webhook_config::Webhook;
use super::outgoing_auth::aws_sts::AwsSts;
use super::references::{AuthServerRef, ImagePullSecret, SecretKeySelector};
use super::session_storage::SessionStorage;
use super::virtual_mcp_server::{OutgoingAuth, VirtualMCPServerSpec};
use super::{
    EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRegistry, MCPRemoteProxy,
    MCPServer, MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPCompositeToolDefinition,
    VirtualMCPServer,
};
use crate::kind::Kind;
use crate::{crd, schema};

/// An object without a spec passes admission, and then the API server fills in nothing: `Default` must.
#[test]
fn an_absent_spec_has_the_defaults_of_the_schema() {
    assert_defaults_of_schema::<EmbeddingServer>(&["image", "imagePullPolicy", "model", "port", "replicas"]);
    assert_defaults_of_schema::<MCPGroup>(&[]);
    assert_defaults_of_schema::<MCPRegistry>(&[]);
    assert_defaults_of_schema::<MCPRemoteProxy>(&[
        "allowPrivateEndpoint",
        "proxyPort",
        "sessionAffinity",
        "transport",
        "trustProxyHeaders",
    ]);
    assert_defaults_of_schema::<MCPServer>(&[
        "proxyMode",
        "proxyPort",
        "sessionAffinity",
        "transport",
        "trustProxyHeaders",
    ]);
    assert_defaults_of_schema::<MCPServerEntry>(&["allowPrivateEndpoint"]);
    assert_defaults_of_schema::<MCPAuthzConfig>(&[]);
    assert_defaults_of_schema::<MCPExternalAuthConfig>(&[]);
    assert_defaults_of_schema::<MCPOIDCConfig>(&[]);
    assert_defaults_of_schema::<MCPTelemetryConfig>(&[]);
    assert_defaults_of_schema::<MCPToolConfig>(&[]);
    assert_defaults_of_schema::<MCPWebhookConfig>(&[]);
    assert_defaults_of_schema::<VirtualMCPCompositeToolDefinition>(&[]);
    assert_defaults_of_schema::<VirtualMCPServer>(&["serviceType", "sessionAffinity"]);
}

/// The members are named, sorted, so that the check cannot pass by finding nothing to check.
fn assert_defaults_of_schema<K: Kind>(members: &[&str]) {
    let kind = K::DEFINITION.kind;
    let schema = crd::root_schema::<K>();
    let spec = serde_json::to_value(K::Spec::default()).unwrap();
    let properties = schema["properties"]["spec"]["properties"].as_object().unwrap();
    let mut defaults: Vec<(&str, &Value)> =
        properties.iter().filter_map(|(name, property)| Some((name.as_str(), property.get("default")?))).collect();
    defaults.sort_by_key(|(name, _)| *name);
    assert_eq!(defaults.iter().map(|(name, _)| *name).collect::<Vec<_>>(), members, "{kind}");
    for (name, default) in defaults {
        assert_eq!(spec.get(name), Some(default), "{kind}.spec.{name}");
    }
}

/// Objects whose schema has defaults, by their properties, with what `Default` of their types gives.
struct Defaults(BTreeMap<String, Value>);

impl Defaults {
    fn with<T: JsonSchema + Serialize + Default>(mut self) -> Self {
        let mut properties = schema::of::<T>()["properties"].take();
        // As they are in the definitions.
        properties.sort_all_objects();
        self.0.insert(properties.to_string(), serde_json::to_value(T::default()).unwrap());
        self
    }

    /// Checks all objects of a schema, and counts those with defaults.
    fn check(&self, schema: &Value, path: &str) -> usize {
        // In the configuration of a vMCP process absence means something, so its defaults are not in the types.
        if ["VirtualMCPServer.config", "VirtualMCPCompositeToolDefinition"].contains(&path) {
            return 0;
        }
        let mut checked = 0;
        if let Some(properties) = schema["properties"].as_object() {
            let given = properties.iter().filter_map(|(name, property)| Some((name, property.get("default")?)));
            let given: Vec<(&String, &Value)> = given.collect();
            if !given.is_empty() {
                let default = self.0.get(&schema["properties"].to_string());
                let default = default.unwrap_or_else(|| panic!("{path} is of a type that is not listed"));
                for (name, value) in given {
                    assert_eq!(default.get(name), Some(value), "{path}.{name}");
                }
                checked += 1;
            }
            for (name, property) in properties {
                checked += self.check(property, &format!("{path}.{name}"));
            }
        }
        for inner in ["items", "additionalProperties"] {
            checked += schema.get(inner).map_or(0, |schema| self.check(schema, &format!("{path}[]")));
        }
        checked
    }
}

/// What a controller makes up with `Default` is what the API server would have filled in, at any depth.
#[test]
fn the_default_of_every_type_is_that_of_the_schema() {
    let defaults = Defaults(BTreeMap::new())
        .with::<Audit>()
        .with::<AuthServerRef>()
        .with::<AuthServerStorage>()
        .with::<AuthzConfig>()
        .with::<AuthzConfigMap>()
        .with::<AwsSts>()
        .with::<ClientMetadataDocuments>()
        .with::<ConfigMapKeySelector>()
        .with::<EmbeddedAuthServer>()
        .with::<EmbeddingServerSpec>()
        .with::<HostVolume>()
        .with::<ImagePullSecret>()
        .with::<InlineAuthz>()
        .with::<InlineOIDC>()
        .with::<KubernetesServiceAccountOIDC>()
        .with::<MCPRemoteProxySpec>()
        .with::<MCPServerEntrySpec>()
        .with::<MCPServerSpec>()
        .with::<ModelCache>()
        .with::<OpenTelemetry>()
        .with::<OpenTelemetryMetrics>()
        .with::<OpenTelemetryTracing>()
        .with::<OutgoingAuth>()
        .with::<PermissionProfile>()
        .with::<Prometheus>()
        .with::<RedisSentinel>()
        .with::<RedisStorage>()
        .with::<SecretKeySelector>()
        .with::<SentinelService>()
        .with::<SessionStorage>()
        .with::<TrustedIssuer>()
        .with::<VirtualMCPServerSpec>()
        .with::<Webhook>();
    let mut checked = 0;
    for entry in crd::ALL {
        let document = entry.document();
        let spec = &document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        checked += defaults.check(spec, entry.definition.kind);
    }
    assert!(checked >= defaults.0.len(), "{checked}");
}

/// Every place of a kind that holds a text which may be a secret, or anything at all, holds one.
fn assert_debug_shows_no_secret<K: Kind>(secrets: usize, spec: &Value) {
    let last_applied = json!({ "kubectl.kubernetes.io/last-applied-configuration": "{\"env\": \"hunter2\"}" });
    let object: K =
        serde_json::from_value(json!({ "metadata": { "annotations": last_applied }, "spec": spec })).unwrap();
    assert_eq!(serde_json::to_string(&object).unwrap().matches("hunter2").count(), secrets + 1);
    let text = format!("{object:?} {object:#?}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn debug_shows_no_secret() {
    let env = json!([{ "name": "API_KEY", "value": "hunter2" }]);
    let template = json!({ "spec": { "containers": [{ "env": env }] } });
    let overrides = json!({ "proxyDeployment": { "env": env } });
    let headers = json!({ "addPlaintextHeaders": { "X-Key": "hunter2" } });
    let user_info = json!({ "endpointUrl": "u", "additionalHeaders": { "X-Key": "hunter2" } });
    let auth_server = json!({
        "issuer": "i",
        "upstreamProviders": [
            {
                "name": "a",
                "type": "oauth2",
                "oauth2Config": {
                    "authorizationEndpoint": "a",
                    "tokenEndpoint": "t",
                    "dcrConfig": { "softwareStatement": "hunter2" },
                    "userInfo": user_info,
                },
            },
        ],
    });
    assert_debug_shows_no_secret::<EmbeddingServer>(2, &json!({ "env": env, "podTemplateSpec": template }));
    assert_debug_shows_no_secret::<MCPAuthzConfig>(1, &json!({ "type": "t", "config": { "token": "hunter2" } }));
    assert_debug_shows_no_secret::<MCPExternalAuthConfig>(
        2,
        &json!({ "type": "embeddedAuthServer", "embeddedAuthServer": auth_server }),
    );
    assert_debug_shows_no_secret::<MCPRegistry>(
        4,
        &json!({
            "configYAML": "password: hunter2",
            "podTemplateSpec": template,
            "volumes": [{ "name": "hunter2" }],
            "volumeMounts": ["hunter2"],
        }),
    );
    assert_debug_shows_no_secret::<MCPRemoteProxy>(
        3,
        &json!({
            "remoteUrl": "u",
            "headerForward": headers,
            "podTemplateSpec": template,
            "resourceOverrides": overrides,
        }),
    );
    assert_debug_shows_no_secret::<MCPServer>(
        3,
        &json!({ "image": "i", "env": env, "podTemplateSpec": template, "resourceOverrides": overrides }),
    );
    assert_debug_shows_no_secret::<MCPServerEntry>(
        1,
        &json!({ "remoteUrl": "u", "transport": "sse", "groupRef": { "name": "g" }, "headerForward": headers }),
    );
    assert_debug_shows_no_secret::<MCPTelemetryConfig>(
        1,
        &json!({ "openTelemetry": { "headers": { "authorization": "hunter2" } } }),
    );
    assert_debug_shows_no_secret::<VirtualMCPServer>(
        4,
        &json!({
            "groupRef": { "name": "g" },
            "incomingAuth": { "type": "anonymous" },
            "authServerConfig": auth_server,
            "config": { "later": "hunter2" },
            "podTemplateSpec": template,
        }),
    );
}
