//! All kinds of objects that the server knows at the moment, custom ones included.

use kube::Client;
use kube::discovery::{ApiResource, Discovery, Scope, verbs};

use super::error::ControllerError;

/// A kind whose objects can be listed and deleted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Resource {
    pub(super) api: ApiResource,
    pub(super) namespaced: bool,
    pub(super) watchable: bool,
    pub(super) deletes_collections: bool,
}

/// Every kind once, in its preferred version.
pub(super) async fn resources(client: &Client) -> Result<Vec<Resource>, ControllerError> {
    let discovery = match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => discovery,
        // A server without aggregated discovery answers group by group.
        Err(_) => Discovery::new(client.clone()).run().await?,
    };
    let mut resources = Vec::new();
    for group in discovery.groups_alphabetical() {
        for (api, capabilities) in group.resources_by_stability() {
            if capabilities.supports_operation(verbs::LIST) && capabilities.supports_operation(verbs::DELETE) {
                resources.push(Resource {
                    api,
                    namespaced: capabilities.scope == Scope::Namespaced,
                    watchable: capabilities.supports_operation(verbs::WATCH),
                    deletes_collections: capabilities.supports_operation(verbs::DELETE_COLLECTION),
                });
            }
        }
    }
    Ok(resources)
}

/// Events are told in two groups, never own anything, and expire by themselves.
pub(super) fn is_event(resource: &Resource) -> bool {
    resource.api.kind == "Event" && matches!(resource.api.group.as_str(), "" | "events.k8s.io")
}
