//! The kinds that are looked at.

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use kube::core::{ApiResource, DynamicObject};
use skep_api::kind::GROUP;
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPOIDCConfig, MCPRemoteProxy, MCPServer, MCPTelemetryConfig, MCPToolConfig,
    MCPWebhookConfig,
};

/// The kinds of ours that have a controller.
pub fn own_kinds() -> [ApiResource; 8] {
    [
        ApiResource::erase::<MCPAuthzConfig>(&()),
        ApiResource::erase::<MCPExternalAuthConfig>(&()),
        ApiResource::erase::<MCPOIDCConfig>(&()),
        ApiResource::erase::<MCPTelemetryConfig>(&()),
        ApiResource::erase::<MCPToolConfig>(&()),
        ApiResource::erase::<MCPWebhookConfig>(&()),
        ApiResource::erase::<MCPServer>(&()),
        ApiResource::erase::<MCPRemoteProxy>(&()),
    ]
}

/// The kinds of everything that the operator makes for others.
pub fn child_kinds() -> [ApiResource; 8] {
    [
        ApiResource::erase::<ConfigMap>(&()),
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<NetworkPolicy>(&()),
        ApiResource::erase::<Role>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Service>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<StatefulSet>(&()),
    ]
}

/// The controller of an object, if it has one.
pub(super) fn controller(object: &DynamicObject) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// Whether an object of ours owns this one.
pub fn is_ours(object: &DynamicObject) -> bool {
    controller(object).is_some_and(|owner| owner.api_version.split('/').next() == Some(GROUP))
}
