//! Labels, annotations and a few other things users may add to the objects that Skep creates for them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::ImagePullSecret;
use crate::sensitive::Sensitive;

/// Additions to the objects created for a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyOverrides {
    /// Additions to the proxy's Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_deployment: Option<ProxyDeploymentOverrides>,
    /// Additions to the proxy's Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_service: Option<MetadataOverrides>,
}

/// Additions to the Deployment of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyDeploymentOverrides {
    /// Annotations to add to the Deployment. Those that Skep sets itself win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Environment variables to add to the proxy container, not to the MCP server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// Secrets with which the images of the proxy and of the MCP server are pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub image_pull_secrets: Vec<ImagePullSecret>,
    /// Labels to add to the Deployment. Those that Skep sets itself win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Labels and annotations to add to the proxy's pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template_metadata_overrides: Option<MetadataOverrides>,
}

/// Labels and annotations to add to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOverrides {
    /// Annotations to add. Those that Skep sets itself win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels to add. Those that Skep sets itself win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// An environment variable with a literal value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// The name of the variable.
    pub name: String,
    /// Its value, taken literally.
    pub value: Sensitive,
}
