//! Who owns whom, as far as the watches have told.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::discovery::ApiResource;

use super::decide::{FOREGROUND, ORPHAN};

/// Owners that are known to be gone; the oldest are forgotten, and asked for again when they matter.
const REMEMBERED: usize = 10_000;

/// Whom a reference means. The UID alone is not enough: whoever writes a reference may put the UID of a stranger into it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    group: String,
    kind: String,
    /// Empty for kinds without namespaces.
    namespace: String,
    name: String,
    uid: String,
}

impl Identity {
    /// The owner that a reference names, if it is in this namespace.
    pub(super) fn of(reference: &OwnerReference, namespace: &str) -> Self {
        Self {
            group: group_of(reference).to_owned(),
            kind: reference.kind.clone(),
            namespace: namespace.to_owned(),
            name: reference.name.clone(),
            uid: reference.uid.clone(),
        }
    }
}

pub(super) fn group_of(reference: &OwnerReference) -> &str {
    reference.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// An object, reduced to what garbage collection needs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) api: ApiResource,
    pub(super) namespaced: bool,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) finalizers: Vec<String>,
    pub(super) deleting: bool,
}

impl Node {
    pub(super) fn new(api: &ApiResource, namespaced: bool, metadata: ObjectMeta) -> Self {
        Self {
            api: api.clone(),
            namespaced,
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            version: metadata.resource_version.unwrap_or_default(),
            owners: metadata.owner_references.unwrap_or_default(),
            finalizers: metadata.finalizers.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
        }
    }

    pub(super) fn has_finalizer(&self, wanted: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == wanted)
    }

    /// It waits for its dependents to be deleted first.
    pub(super) fn is_foreground(&self) -> bool {
        self.deleting && self.has_finalizer(FOREGROUND)
    }

    pub(super) fn is_orphaning(&self) -> bool {
        self.deleting && self.has_finalizer(ORPHAN)
    }

    /// Whether a reference means this very object: owners live in the namespace of their dependents, or in none.
    pub(super) fn is_meant_by(&self, reference: &OwnerReference, dependent: &Node) -> bool {
        let namespace = if self.namespaced { &dependent.namespace } else { "" };
        self.identity() == Identity::of(reference, namespace)
    }

    fn identity(&self) -> Identity {
        Identity {
            group: self.api.group.clone(),
            kind: self.api.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    dependents: HashMap<String, BTreeSet<String>>,
    gone: HashSet<Identity>,
    gone_order: VecDeque<Identity>,
}

impl Graph {
    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Whether the owner that a dependent names is known to be gone, from its namespace or from outside of all.
    pub(super) fn is_gone(&self, reference: &OwnerReference, dependent: &Node) -> bool {
        [dependent.namespace.as_str(), ""].iter().any(|place| self.gone.contains(&Identity::of(reference, place)))
    }

    /// The objects whose references mean this one.
    pub(super) fn dependents(&self, uid: &str) -> Vec<&Node> {
        let Some(owner) = self.nodes.get(uid) else { return Vec::new() };
        let candidates =
            self.dependents.get(uid).into_iter().flatten().filter_map(|dependent| self.nodes.get(dependent));
        let means = |dependent: &&Node| dependent.owners.iter().any(|known| owner.is_meant_by(known, dependent));
        candidates.filter(means).collect()
    }

    /// An object appeared or changed. Returns the UIDs that need a decision.
    pub(super) fn observe(&mut self, node: Node) -> Vec<String> {
        let uid = node.uid.clone();
        let before = self.nodes.get(&uid);
        let owners_changed = before.map_or(!node.owners.is_empty(), |before| before.owners != node.owners);
        let was_waiting = before.is_some_and(Node::is_foreground);
        let mut affected = Vec::new();
        if owners_changed || node.is_foreground() || node.is_orphaning() {
            affected.push(uid.clone());
        }
        if node.is_foreground() && !was_waiting {
            affected.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
        }
        // A dependent that lost or changed its reference may have been what its owner waited for.
        let former: Vec<String> =
            before.map(|before| before.owners.iter().map(|owner| owner.uid.clone()).collect()).unwrap_or_default();
        if owners_changed {
            affected.extend(self.waiting_among(&former));
            self.unlink(&uid, &former);
        }
        for owner in &node.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.clone());
        }
        self.nodes.insert(uid, node);
        affected
    }

    /// An object is gone. Returns the UIDs that need a decision.
    pub(super) fn forget(&mut self, uid: &str) -> Vec<String> {
        let Some(node) = self.nodes.remove(uid) else { return Vec::new() };
        self.remember_gone(node.identity());
        let owners: Vec<String> = node.owners.into_iter().map(|owner| owner.uid).collect();
        self.unlink(uid, &owners);
        let mut affected: Vec<String> = self.dependents.get(uid).into_iter().flatten().cloned().collect();
        affected.extend(self.waiting_among(&owners));
        affected
    }

    /// An object's kind is not served any more: nothing is known of it, not even that it is gone.
    pub(super) fn lose_sight(&mut self, uid: &str) {
        if let Some(node) = self.nodes.remove(uid) {
            let owners: Vec<String> = node.owners.into_iter().map(|owner| owner.uid).collect();
            self.unlink(uid, &owners);
        }
    }

    pub(super) fn remember_gone(&mut self, owner: Identity) {
        if self.gone.insert(owner.clone()) {
            self.gone_order.push_back(owner);
        }
        while self.gone_order.len() > REMEMBERED {
            if let Some(oldest) = self.gone_order.pop_front() {
                self.gone.remove(&oldest);
            }
        }
    }

    fn waiting_among(&self, owners: &[String]) -> Vec<String> {
        let waiting = |uid: &&String| self.nodes.get(*uid).is_some_and(Node::is_foreground);
        owners.iter().filter(waiting).cloned().collect()
    }

    fn unlink(&mut self, uid: &str, owners: &[String]) {
        for owner in owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(uid: &str, owners: &[&str], finalizers: &[&str], deleting: bool) -> Node {
        let owners: Vec<_> = owners
            .iter()
            .map(|owner| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner}))
            .collect();
        let deletion = deleting.then_some("2026-01-01T00:00:00Z");
        let metadata = json!({"name": uid, "uid": uid, "namespace": "n", "ownerReferences": owners,
            "finalizers": finalizers, "deletionTimestamp": deletion});
        let api = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        Node::new(&api, true, serde_json::from_value(metadata).unwrap())
    }

    #[test]
    fn only_objects_with_owners_need_a_decision() {
        let mut graph = Graph::default();
        assert!(graph.observe(node("owner", &[], &[], false)).is_empty());
        assert_eq!(graph.observe(node("child", &["owner"], &[], false)), ["child"]);
        assert!(graph.observe(node("child", &["owner"], &[], false)).is_empty(), "nothing changed");
        assert_eq!(graph.dependents("owner").len(), 1);
    }

    #[test]
    fn dependents_are_looked_at_when_their_owner_goes() {
        let mut graph = Graph::default();
        graph.observe(node("owner", &[], &[], false));
        graph.observe(node("child", &["owner"], &[], false));
        assert_eq!(graph.forget("owner"), ["child"]);
        let child = graph.get("child").unwrap();
        assert!(graph.is_gone(&child.owners[0], child));
    }

    #[test]
    fn a_reference_that_means_nobody_says_nothing_about_the_bearer_of_its_uid() {
        let mut graph = Graph::default();
        graph.observe(node("owner", &[], &[], false));
        graph.observe(node("child", &["owner"], &[], false));
        let mut elsewhere = node("elsewhere", &["owner"], &[], false);
        elsewhere.namespace = "other".to_owned();
        let mut misnamed = node("misnamed", &["owner"], &[], false);
        misnamed.owners[0].name = "somebody".to_owned();
        let mut of_another_group = node("of-another-group", &["owner"], &[], false);
        of_another_group.owners[0].api_version = "test.skep.dev/v1".to_owned();
        for stranger in [elsewhere, misnamed, of_another_group] {
            graph.observe(stranger.clone());
            graph.remember_gone(Identity::of(&stranger.owners[0], &stranger.namespace));
            assert!(graph.is_gone(&stranger.owners[0], &stranger), "{}", stranger.name);
        }
        let child = graph.get("child").unwrap();
        assert!(!graph.is_gone(&child.owners[0], child));
        assert_eq!(graph.dependents("owner"), [child], "strangers do not hold up the owner");
    }

    #[test]
    fn an_owner_that_waits_is_looked_at_when_a_dependent_goes() {
        let mut graph = Graph::default();
        graph.observe(node("owner", &[], &[], false));
        graph.observe(node("child", &["owner"], &[], false));
        assert_eq!(graph.observe(node("owner", &[], &[FOREGROUND], true)), ["owner", "child"]);
        assert_eq!(graph.forget("child"), ["owner"]);
        assert!(graph.dependents("owner").is_empty());
    }

    #[test]
    fn an_owner_that_waits_is_looked_at_when_a_dependent_is_released() {
        let mut graph = Graph::default();
        graph.observe(node("owner", &[], &[FOREGROUND], true));
        graph.observe(node("child", &["owner"], &[], false));
        let affected = graph.observe(node("child", &[], &[], false));
        assert!(affected.contains(&"owner".to_owned()), "{affected:?}");
    }
}
