//! How one object names another, always in its own namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::raw::RawObject;

/// A key of a Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// The key within the Secret's data.
    pub key: String,
    /// The name of the Secret.
    pub name: String,
}

/// A key of a Secret in the same namespace, as Kubernetes itself writes it: unlike in [`SecretKeyRef`] the schema lets
/// the name be absent; controllers refuse that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretKeySelector {
    /// The key within the Secret's data.
    pub key: String,
    /// The name of the Secret.
    #[serde(default)]
    pub name: String,
    /// Part of the notation and without effect: the Secret and its key must exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// Names one other object of a known kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// The name of the object, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Names one other object of a known kind. Unlike [`ObjectRef`] the schema lets an empty name pass, as the wire
/// contract has it for these references; controllers refuse it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LooseObjectRef {
    /// The name of the object, in the same namespace.
    pub name: String,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A Secret that holds credentials for an image registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ImagePullSecret {
    /// The name of the Secret, in the same namespace.
    #[serde(default)]
    pub name: String,
}

/// An MCPOIDCConfig, with what differs from one of its users to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OIDCConfigRef {
    /// The audience that a token must carry to be accepted here. Give every server its own, or a token for one
    /// of them opens all of them.
    #[schemars(length(min = 1))]
    pub audience: String,
    /// The name of the MCPOIDCConfig, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The address under which clients reach this endpoint, published in the OAuth protected-resource document.
    /// Defaults to the address of the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_url: Option<String>,
    /// The OAuth scopes that clients are told to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub scopes: Vec<String>,
}

/// An MCPTelemetryConfig, with what differs from one of its users to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TelemetryConfigRef {
    /// The name of the MCPTelemetryConfig, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The service name in traces and metrics. Defaults to the name of this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
}

/// The object that configures the embedded authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthServerRef {
    /// The kind of the object.
    #[serde(default)]
    #[schemars(extend("x-skep-required" = true))]
    pub kind: AuthServerKind,
    /// The name of the object, in the same namespace.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Kinds that can configure an embedded authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuthServerKind {
    #[default]
    MCPExternalAuthConfig,
    /// One that cannot. The schema refuses it; where it is stored nevertheless, controllers do.
    #[serde(untagged)]
    #[schemars(skip)]
    Other(String),
}
