//! Roles and bindings in memory, found by subject, so that a decision looks only at bindings that concern the user.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::binding::{Binding, RoleKind, RoleReference, Subject};
use super::evaluate::RoleSource;
use super::rule::Rule;
use crate::auth::user::{User, service_account_user_name};

/// Built from documents, kept up to date by [`RoleIndex::apply`] and [`RoleIndex::remove`].
#[derive(Debug, Default)]
pub struct RoleIndex {
    cluster_roles: HashMap<String, Vec<Rule>>,
    /// By namespace, then by name.
    roles: HashMap<String, HashMap<String, Vec<Rule>>>,
    cluster_bindings: Bindings,
    bindings: HashMap<String, Bindings>,
}

impl RoleIndex {
    pub fn from_documents<'a>(documents: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut index = Self::default();
        for document in documents {
            index.apply(document);
        }
        index
    }

    /// Takes in a role or binding that is new or has changed. Other kinds are ignored.
    pub fn apply(&mut self, document: &Value) {
        let (kind, namespace, name) = key_of(document);
        match kind {
            "ClusterRole" => {
                self.cluster_roles.insert(name.to_owned(), Rule::read_all(document));
            }
            "Role" => {
                self.roles.entry(namespace.to_owned()).or_default().insert(name.to_owned(), Rule::read_all(document));
            }
            "ClusterRoleBinding" => self.cluster_bindings.put(name, Binding::read(document)),
            "RoleBinding" => {
                self.bindings.entry(namespace.to_owned()).or_default().put(name, Binding::read(document));
            }
            _ => {}
        }
    }

    /// Forgets a role or binding that is gone.
    pub fn remove(&mut self, document: &Value) {
        let (kind, namespace, name) = key_of(document);
        match kind {
            "ClusterRole" => {
                self.cluster_roles.remove(name);
            }
            "Role" => {
                if let Some(roles) = self.roles.get_mut(namespace) {
                    roles.remove(name);
                    if roles.is_empty() {
                        self.roles.remove(namespace);
                    }
                }
            }
            "ClusterRoleBinding" => self.cluster_bindings.put(name, None),
            "RoleBinding" => {
                if let Some(bindings) = self.bindings.get_mut(namespace) {
                    bindings.put(name, None);
                    if bindings.all.is_empty() {
                        self.bindings.remove(namespace);
                    }
                }
            }
            _ => {}
        }
    }
}

impl RoleSource for RoleIndex {
    fn rules(&self, role: &RoleReference, namespace: &str) -> Option<&[Rule]> {
        match role.kind {
            RoleKind::ClusterRole => self.cluster_roles.get(&role.name),
            RoleKind::Role => self.roles.get(namespace)?.get(&role.name),
        }
        .map(Vec::as_slice)
    }

    fn cluster_bindings(&self, user: &User) -> Vec<&Binding> {
        self.cluster_bindings.of(user)
    }

    fn namespace_bindings(&self, namespace: &str, user: &User) -> Vec<&Binding> {
        self.bindings.get(namespace).map(|bindings| bindings.of(user)).unwrap_or_default()
    }
}

/// Kind, namespace and name of a document.
fn key_of(document: &Value) -> (&str, &str, &str) {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    (text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// The bindings of one scope. The names of the subject maps are names of bindings.
#[derive(Debug, Default)]
struct Bindings {
    all: BTreeMap<String, Binding>,
    of_user: HashMap<String, BTreeSet<String>>,
    of_group: HashMap<String, BTreeSet<String>>,
}

impl Bindings {
    fn put(&mut self, name: &str, binding: Option<Binding>) {
        if let Some(old) = self.all.remove(name) {
            for subject in &old.subjects {
                let (map, key) = self.place(subject);
                if let Some(names) = map.get_mut(&key) {
                    names.remove(name);
                    if names.is_empty() {
                        map.remove(&key);
                    }
                }
            }
        }
        let Some(binding) = binding else {
            return;
        };
        for subject in &binding.subjects {
            let (map, key) = self.place(subject);
            map.entry(key).or_default().insert(name.to_owned());
        }
        self.all.insert(name.to_owned(), binding);
    }

    fn place(&mut self, subject: &Subject) -> (&mut HashMap<String, BTreeSet<String>>, String) {
        match subject {
            Subject::User(name) => (&mut self.of_user, name.clone()),
            Subject::Group(name) => (&mut self.of_group, name.clone()),
            Subject::ServiceAccount { namespace, name } => {
                (&mut self.of_user, service_account_user_name(namespace, name))
            }
        }
    }

    fn of(&self, user: &User) -> Vec<&Binding> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let found = self.of_user.get(&user.name).into_iter();
        for set in found.chain(user.groups.iter().filter_map(|group| self.of_group.get(group))) {
            names.extend(set.iter().map(String::as_str));
        }
        names.into_iter().filter_map(|name| self.all.get(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_removed_leaves_nothing_behind() {
        let subjects = json!([{ "kind": "User", "name": "u" }, { "kind": "Group", "name": "g" }]);
        let binding = |kind: &str, namespace: &str| {
            json!({ "kind": kind, "metadata": { "name": "b", "namespace": namespace },
                "roleRef": { "kind": "ClusterRole", "name": "r" }, "subjects": subjects })
        };
        let documents = [
            binding("ClusterRoleBinding", ""),
            binding("RoleBinding", "n"),
            json!({ "kind": "Role", "metadata": { "name": "r", "namespace": "n" } }),
            json!({ "kind": "ClusterRole", "metadata": { "name": "r" } }),
        ];
        let mut index = RoleIndex::from_documents(&documents);
        for document in &documents {
            index.remove(document);
        }
        let RoleIndex { cluster_roles, roles, cluster_bindings: Bindings { all, of_user, of_group }, bindings } = index;
        assert!(cluster_roles.is_empty() && roles.is_empty() && bindings.is_empty());
        assert!(all.is_empty() && of_user.is_empty() && of_group.is_empty());
    }
}
