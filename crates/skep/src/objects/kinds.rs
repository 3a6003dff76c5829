//! The kinds that an API server knows, by any of their names.

use kube::core::GroupVersionKind;
use kube::core::discovery::v2::{APIGroupDiscoveryList, APIResourceDiscovery};
use kube::discovery::ApiResource;
use kube::{Api, Client};

use crate::connection::refusal;
use crate::hint::{Hinted, closest};

/// All kinds, in the order in which a name is looked for.
#[derive(Debug)]
pub(crate) struct Kinds(Vec<KnownKind>);

/// A kind.
#[derive(Debug, Clone)]
pub(crate) struct KnownKind {
    pub(crate) resource: ApiResource,
    pub(crate) is_namespaced: bool,
    /// In lower case: plural, singular, kind, short names, and the plural with its group.
    names: Vec<String>,
}

impl KnownKind {
    fn new(group: &str, version: &str, found: &APIResourceDiscovery) -> Option<Self> {
        let plural = found.resource.clone()?;
        let kind = found.response_kind.as_ref()?.kind.clone()?;
        let mut names = vec![plural.clone(), kind.to_lowercase(), format!("{plural}.{group}")];
        names.extend(found.singular_resource.clone());
        names.extend(found.short_names.iter().cloned());
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &kind), &plural);
        Some(Self { resource, is_namespaced: found.scope.as_deref() == Some("Namespaced"), names })
    }

    /// The objects of the kind in a namespace, or in none when the kind has none.
    pub(crate) fn api(&self, client: &Client, namespace: &str) -> Api<kube::api::DynamicObject> {
        if self.is_namespaced {
            Api::namespaced_with(client.clone(), namespace, &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }
}

impl Kinds {
    /// Asks the server. Of several versions of a kind, it is the preferred one.
    pub(crate) async fn discover(client: &Client) -> anyhow::Result<Self> {
        let core = client.list_core_api_versions_aggregated().await.map_err(refusal)?;
        let groups = client.list_api_groups_aggregated().await.map_err(refusal)?;
        Ok(Self::new(&[core, groups]))
    }

    fn new(lists: &[APIGroupDiscoveryList]) -> Self {
        let mut kinds: Vec<KnownKind> = Vec::new();
        for group in lists.iter().flat_map(|list| &list.items) {
            let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
            for version in &group.versions {
                let found = version.resources.iter();
                let found = found.filter_map(|found| KnownKind::new(name, version.version.as_deref()?, found));
                for kind in found {
                    let is_new = |known: &KnownKind| {
                        (&known.resource.group, &known.resource.plural) != (&kind.resource.group, &kind.resource.plural)
                    };
                    if kinds.iter().all(is_new) {
                        kinds.push(kind);
                    }
                }
            }
        }
        Self(kinds)
    }

    /// The kind that a person means.
    pub(crate) fn find(&self, name: &str) -> Result<&KnownKind, Hinted> {
        let lower = name.to_lowercase();
        self.0.iter().find(|kind| kind.names.contains(&lower)).ok_or_else(|| {
            let problem = Hinted::new(format!("the server has no kind {name:?}"));
            let meant = closest(name, self.0.iter().flat_map(|kind| kind.names.iter().map(String::as_str)));
            problem.hint(meant.map_or_else(
                || "kinds are named as in kubectl: pods, deployments, services, mcpservers".to_owned(),
                |meant| format!("did you mean {meant}?"),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_answers_to_all_of_its_names() {
        let resource = |plural: &str, singular: &str, kind: &str, short: &str| {
            json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind},
                "scope": "Namespaced", "singularResource": singular, "verbs": ["get"], "shortNames": [short]})
        };
        let list = |name: &str, versions: serde_json::Value| {
            let list = json!({"items": [{"metadata": {"name": name}, "versions": versions}]});
            serde_json::from_value::<APIGroupDiscoveryList>(list).unwrap()
        };
        let events = resource("events", "event", "Event", "ev");
        let core = list("", json!([{"version": "v1", "resources": [events, resource("pods", "pod", "Pod", "po")]}]));
        let group = list(
            "events.k8s.io",
            json!([{"version": "v1", "resources": [events]}, {"version": "v1beta1", "resources": [events]}]),
        );
        let kinds = Kinds::new(&[core, group]);
        for name in ["events", "Event", "ev"] {
            assert_eq!(kinds.find(name).unwrap().resource.api_version, "v1");
        }
        assert_eq!(kinds.find("events.events.k8s.io").unwrap().resource.api_version, "events.k8s.io/v1");
        assert_eq!(kinds.0.len(), 3);
        assert_eq!(kinds.find("bods").unwrap_err().to_string(), "the server has no kind \"bods\"");
    }
}
