//! Objects of an API server, whatever their kind.

mod kinds;

pub(crate) use kinds::{Kinds, KnownKind};

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::discovery::{ApiResource, Scope};
use kube::{Api, Client};
use serde_json::Value;

use crate::connection::refusal;
use crate::hint::Hinted;

/// The name under which Skep owns what it applies.
const MANAGER: &str = "skep";

/// The place of an object that a manifest describes.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) resource: ApiResource,
    pub(crate) name: String,
    pub(crate) api: Api<DynamicObject>,
}

impl Place {
    /// Where the object of a manifest is. One that does not name its namespace is in `namespace`.
    pub(crate) async fn find(client: &Client, object: &Value, namespace: &str) -> anyhow::Result<Self> {
        let text = |member: &str| object[member].as_str().unwrap_or_default();
        let kind = kube::core::GroupVersionKind::try_from(kube::core::TypeMeta {
            api_version: text("apiVersion").to_owned(),
            kind: text("kind").to_owned(),
        })?;
        let (resource, capabilities) = kube::discovery::pinned_kind(client, &kind)
            .await
            .map_err(|_| Hinted::new(format!("the kind {} of {} is not known", kind.kind, kind.api_version())))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
        let api = match capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(client.clone(), &resource),
        };
        Ok(Self { resource, name, api })
    }

    /// Applies the object, on the server's side.
    pub(crate) async fn apply(&self, object: &Value) -> anyhow::Result<DynamicObject> {
        self.patch(object, &PatchParams::apply(MANAGER).force()).await
    }

    /// Asks the server whether it would apply the object.
    pub(crate) async fn try_apply(&self, object: &Value) -> anyhow::Result<DynamicObject> {
        self.patch(object, &PatchParams::apply(MANAGER).force().dry_run()).await
    }

    async fn patch(&self, object: &Value, parameters: &PatchParams) -> anyhow::Result<DynamicObject> {
        self.api.patch(&self.name, parameters, &Patch::Apply(object)).await.map_err(refusal)
    }

    /// How kubectl would call it: `deployment.apps/echo`.
    pub(crate) fn title(&self) -> String {
        title(&self.resource, &self.name)
    }
}

/// How kubectl would call an object: `deployment.apps/echo`.
pub(crate) fn title(resource: &ApiResource, name: &str) -> String {
    let kind = resource.kind.to_lowercase();
    match resource.group.as_str() {
        "" => format!("{kind}/{name}"),
        group => format!("{kind}.{group}/{name}"),
    }
}
