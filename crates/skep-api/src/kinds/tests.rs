//! What must hold for every kind.

use serde_json::Value;

use super::{
    EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPRegistry, MCPRemoteProxy,
    MCPServer, MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, MCPWebhookConfig, VirtualMCPCompositeToolDefinition,
    VirtualMCPServer,
};
use crate::crd;
use crate::kind::Kind;

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
