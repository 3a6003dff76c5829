//! A user as the authorizers see one: a name, groups, and what else is known.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::names::{dns1123_label, dns1123_subdomain};

/// Members may do everything, whatever the roles say.
pub const MASTERS_GROUP: &str = "system:masters";
pub const NODES_GROUP: &str = "system:nodes";
pub const NODE_USER_PREFIX: &str = "system:node:";
pub const AUTHENTICATED_GROUP: &str = "system:authenticated";
pub const UNAUTHENTICATED_GROUP: &str = "system:unauthenticated";
pub const ANONYMOUS_USER: &str = "system:anonymous";
pub const SERVICE_ACCOUNTS_GROUP: &str = "system:serviceaccounts";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// What identifies the certificate or the token that a request came with.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    pub name: String,
    pub uid: Option<String>,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with nothing but a name and groups.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        Self { name: name.into(), uid: None, groups, extra: BTreeMap::new() }
    }

    /// Somebody who came without credentials.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS_USER, &[UNAUTHENTICATED_GROUP])
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|member| member == group)
    }

    /// The user info of reviews.
    pub fn document(&self) -> Value {
        let mut document = Map::new();
        if !self.name.is_empty() {
            document.insert("username".into(), self.name.as_str().into());
        }
        if let Some(uid) = self.uid.as_deref().filter(|uid| !uid.is_empty()) {
            document.insert("uid".into(), uid.into());
        }
        if !self.groups.is_empty() {
            document.insert("groups".into(), self.groups.clone().into());
        }
        if !self.extra.is_empty() {
            let extra = self.extra.iter().map(|(key, values)| (key.clone(), values.clone().into()));
            document.insert("extra".into(), Value::Object(extra.collect()));
        }
        Value::Object(document)
    }
}

/// The user name of a service account.
pub fn service_account_user_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Namespace and name of the service account that a user name stands for.
pub fn service_account_of(user_name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user_name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    (dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty()).then_some((namespace, name))
}

/// The groups of every service account of a namespace, without [`AUTHENTICATED_GROUP`].
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS_GROUP.to_owned(), format!("{SERVICE_ACCOUNTS_GROUP}:{namespace}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_names_are_taken_apart_only_when_well_formed() {
        assert_eq!(service_account_of("system:serviceaccount:default:web.x"), Some(("default", "web.x")));
        for name in [
            "system:serviceaccount:bad",
            "system:serviceaccount::x",
            "system:serviceaccount:a:",
            "bob",
            "system:serviceaccount:a:b:c",
            "system:serviceaccount:A:b",
        ] {
            assert_eq!(service_account_of(name), None, "{name}");
        }
    }

    #[test]
    fn empty_parts_are_left_out_of_the_document() {
        assert_eq!(User::default().document(), serde_json::json!({}));
        assert_eq!(
            User::anonymous().document(),
            serde_json::json!({ "username": "system:anonymous", "groups": ["system:unauthenticated"] })
        );
    }
}
