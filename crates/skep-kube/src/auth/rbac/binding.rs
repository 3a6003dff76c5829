//! Bindings: which role goes to which subjects.

use serde_json::Value;

use super::GROUP;
use crate::auth::user::{User, service_account_user_name};
use crate::go_text::quoted;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoleKind {
    Role,
    ClusterRole,
}

impl RoleKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Role => "Role",
            Self::ClusterRole => "ClusterRole",
        }
    }

    /// The plural name, as in paths.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Role => "roles",
            Self::ClusterRole => "clusterroles",
        }
    }
}

/// The role that a binding grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleReference {
    pub kind: RoleKind,
    pub name: String,
}

impl RoleReference {
    pub fn read(binding: &Value) -> Option<Self> {
        let reference = binding.get("roleRef")?;
        let kind = match reference.get("kind")?.as_str()? {
            "Role" => RoleKind::Role,
            "ClusterRole" => RoleKind::ClusterRole,
            _ => return None,
        };
        let name = reference.get("name")?.as_str()?.to_owned();
        Some(Self { kind, name })
    }

    /// What to say when there is no such role.
    pub fn not_found(&self) -> String {
        format!("{}.{GROUP} {} not found", self.kind.name().to_lowercase(), quoted(&self.name))
    }
}

/// Somebody that a role is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

impl Subject {
    fn read(document: &Value, binding_namespace: &str) -> Option<Self> {
        let text = |field: &str| document.get(field).and_then(Value::as_str);
        let name = text("name")?.to_owned();
        match text("kind")? {
            "User" => Some(Self::User(name)),
            "Group" => Some(Self::Group(name)),
            "ServiceAccount" => {
                let namespace = text("namespace").filter(|text| !text.is_empty()).unwrap_or(binding_namespace);
                (!namespace.is_empty()).then(|| Self::ServiceAccount { namespace: namespace.to_owned(), name })
            }
            _ => None,
        }
    }

    fn is(&self, user: &User) -> bool {
        match self {
            Self::User(name) => user.name == *name,
            Self::Group(name) => user.is_in(name),
            Self::ServiceAccount { namespace, name } => user.name == service_account_user_name(namespace, name),
        }
    }

    fn described(&self) -> String {
        match self {
            Self::User(name) => format!("User {}", quoted(name)),
            Self::Group(name) => format!("Group {}", quoted(name)),
            Self::ServiceAccount { namespace, name } => {
                format!("ServiceAccount {}", quoted(&format!("{name}/{namespace}")))
            }
        }
    }
}

/// A ClusterRoleBinding, or a RoleBinding in a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    pub name: String,
    /// Empty for a ClusterRoleBinding.
    pub namespace: String,
    pub role: RoleReference,
    pub subjects: Vec<Subject>,
}

impl Binding {
    /// Reads a binding; one that refers to no known kind of role grants nothing and is none.
    pub fn read(document: &Value) -> Option<Self> {
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let namespace = text("/metadata/namespace");
        let subjects = document.get("subjects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let subjects = subjects.iter().filter_map(|subject| Subject::read(subject, &namespace)).collect();
        Some(Self { name: text("/metadata/name"), role: RoleReference::read(document)?, subjects, namespace })
    }

    /// The first subject that the user is, or belongs to.
    pub fn subject_for(&self, user: &User) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.is(user))
    }

    /// The reason that reviews give for what this binding allows.
    pub fn reason(&self, subject: &Subject) -> String {
        let (kind, name) = if self.namespace.is_empty() {
            ("ClusterRoleBinding", quoted(&self.name))
        } else {
            ("RoleBinding", quoted(&format!("{}/{}", self.name, self.namespace)))
        };
        let role = &self.role;
        let described = subject.described();
        format!("RBAC: allowed by {kind} {name} of {} {} to {described}", role.kind.name(), quoted(&role.name))
    }
}
