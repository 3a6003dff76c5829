//! What users add to the objects of a proxy.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::LocalObjectReference;
use skep_api::kinds::overrides::{MetadataOverrides, ProxyDeploymentOverrides};

use super::Inputs;

type Words = BTreeMap<String, String>;

impl<'a> Inputs<'a> {
    /// `spec.resourceOverrides.proxyDeployment`.
    pub(super) fn deployment_overrides(&self) -> Option<&'a ProxyDeploymentOverrides> {
        self.common.resource_overrides.and_then(|overrides| overrides.proxy_deployment.as_ref())
    }

    /// `spec.resourceOverrides.proxyDeployment.podTemplateMetadataOverrides`.
    pub(super) fn template_overrides(&self) -> Option<&'a MetadataOverrides> {
        self.deployment_overrides().and_then(|overrides| overrides.pod_template_metadata_overrides.as_ref())
    }

    /// `spec.resourceOverrides.proxyService`.
    pub(super) fn service_overrides(&self) -> Option<&'a MetadataOverrides> {
        self.common.resource_overrides.and_then(|overrides| overrides.proxy_service.as_ref())
    }

    /// Secrets for image registries: those of the object in their order, then those that everybody gets. `None` when
    /// there are none, so that the field is nobody's.
    pub(super) fn image_pull_secrets(&self) -> Option<Vec<LocalObjectReference>> {
        let own = self.deployment_overrides().into_iter().flat_map(|overrides| &overrides.image_pull_secrets);
        let names = own.map(|secret| &secret.name).chain(&self.settings.image_pull_secrets);
        let mut found: Vec<LocalObjectReference> = Vec::new();
        for name in names {
            if !name.is_empty() && !found.iter().any(|known| known.name == *name) {
                found.push(LocalObjectReference { name: name.clone() });
            }
        }
        (!found.is_empty()).then_some(found)
    }
}

/// Labels or annotations of ours and of the user. Ours win; `None` when there are none.
pub(super) fn with_additions(mut ours: Words, additions: Option<&Words>) -> Option<Words> {
    for (name, value) in additions.into_iter().flatten() {
        ours.entry(name.clone()).or_insert_with(|| value.clone());
    }
    (!ours.is_empty()).then_some(ours)
}
