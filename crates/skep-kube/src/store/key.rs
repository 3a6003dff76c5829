//! Where an object lives in the store, and the order in which lists show objects.

use std::cmp::Ordering;
use std::iter::once;
use std::sync::Arc;

/// The address of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Group, slash, plural: `apps/deployments`; `/pods` in the core group.
    pub resource: Arc<str>,
    /// Empty for objects of cluster scope.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    pub fn new(resource: impl Into<Arc<str>>, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The place of the object among those of its resource.
    pub fn position(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.resource.cmp(&other.resource).then_with(|| compare_positions(self.position(), other.position()))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares (namespace, name) pairs of one resource.
pub(super) fn compare_positions(left: (&str, &str), right: (&str, &str)) -> Ordering {
    compare_namespaces(left.0, right.0).then_with(|| left.1.cmp(right.1))
}

/// Clients see lists in the byte order of `namespace/name`, as a real server's storage keeps them. The slash sorts
/// after the hyphen, so `team-a` comes before `team`.
pub(super) fn compare_namespaces(left: &str, right: &str) -> Ordering {
    left.bytes().chain(once(b'/')).cmp(right.bytes().chain(once(b'/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_resource_then_namespace_then_name() {
        let mut keys = [
            Key::new("apps/deployments", "a", "a"),
            Key::new("/pods", "b", "a"),
            Key::new("/pods", "a", "b"),
            Key::new("/pods", "a", "a-b"),
            Key::new("/pods", "a", "a"),
        ];
        keys.sort();
        let order: Vec<_> = keys.iter().map(|key| format!("{}:{}/{}", key.resource, key.namespace, key.name)).collect();
        assert_eq!(order, ["/pods:a/a", "/pods:a/a-b", "/pods:a/b", "/pods:b/a", "apps/deployments:a/a"]);
    }

    #[test]
    fn namespaces_sort_as_if_a_slash_followed() {
        let mut namespaces = ["team", "team1", "team-a", "", "t"];
        namespaces.sort_by(|left, right| compare_namespaces(left, right));
        assert_eq!(namespaces, ["", "t", "team-a", "team", "team1"]);
    }
}
