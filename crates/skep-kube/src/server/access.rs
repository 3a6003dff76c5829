//! Who asks, and may they: the server's side of [`crate::auth`].

use http::request::Parts;
use parking_lot::RwLock;
use serde_json::Value;

use super::State;
use super::exchange::header;
use super::path::{ResourcePath, Target};
use crate::auth::identity::Certificate;
use crate::auth::rbac::{EscalationCheck, GROUP, Rbac, RoleIndex};
use crate::auth::tokens::{BoundKind, BoundObjects, ObjectState, TokenAuthority};
use crate::auth::{Action, Authorizer, PathAction, ResourceAction, User, identity, impersonation};
use crate::status::ApiError;
use crate::store::{Key, Selection, Store};

/// What is known about users and their rights.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) tokens: TokenAuthority,
    roles: RwLock<RoleIndex>,
}

const ROLE_KINDS: [&str; 4] = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];

impl Access {
    pub(crate) fn new(tokens: TokenAuthority, store: &Store) -> Self {
        let mut documents = Vec::new();
        for plural in ROLE_KINDS {
            for record in store.list(&Selection::all(&format!("{GROUP}/{plural}"))).records {
                documents.extend(with_kind(plural, &record.object));
            }
        }
        Self { tokens, roles: RwLock::new(RoleIndex::from_documents(&documents)) }
    }

    /// Takes notice of a role or binding that was written.
    pub(crate) fn written(&self, document: &Value) {
        self.roles.write().apply(document);
    }

    pub(crate) fn removed(&self, document: &Value) {
        self.roles.write().remove(document);
    }

    /// Whether a user may write a role or binding: nobody hands out what they do not hold.
    pub(crate) fn check_escalation(&self, user: &User, old: Option<&Value>, new: &Value) -> Result<(), ApiError> {
        let roles = self.roles.read();
        let rbac = Rbac(&*roles);
        let authorizers = crate::auth::Authorizers(vec![&rbac]);
        EscalationCheck { source: &*roles, authorizer: &authorizers }.check(user, old, new)
    }

    /// Asks with the roles as they are now.
    pub(crate) fn with_authorizer<R>(&self, ask: impl FnOnce(&dyn Authorizer) -> R) -> R {
        let roles = self.roles.read();
        let rbac = Rbac(&*roles);
        ask(&crate::auth::Authorizers(vec![&rbac]))
    }
}

/// Stored objects do not say what they are; the index wants to know.
fn with_kind(plural: &str, object: &[u8]) -> Option<Value> {
    let kind = match plural {
        "roles" => "Role",
        "clusterroles" => "ClusterRole",
        "rolebindings" => "RoleBinding",
        _ => "ClusterRoleBinding",
    };
    let mut document: Value = serde_json::from_slice(object).ok()?;
    document["kind"] = kind.into();
    Some(document)
}

impl State {
    /// The user of a request, after impersonation.
    pub(crate) fn user_of(&self, parts: &Parts) -> Result<User, ApiError> {
        let now = k8s_openapi::jiff::Timestamp::now().as_second();
        let certificate = parts.extensions.get::<Certificate>().unwrap_or(&Certificate::Absent);
        let user = identity::authenticate(
            certificate,
            header(&parts.headers, "authorization"),
            &self.access.tokens,
            self,
            now,
        )?;
        let impersonated =
            self.access.with_authorizer(|authorizer| impersonation::impersonate(&user, &parts.headers, authorizer))?;
        Ok(impersonated.unwrap_or(user))
    }

    /// Whether a user may do what a request wants.
    pub(crate) fn authorize(&self, user: &User, parts: &Parts, target: &Target) -> Result<(), ApiError> {
        let action = action(parts, target);
        self.access.with_authorizer(|authorizer| authorizer.check(user, &action))
    }
}

fn action(parts: &Parts, target: &Target) -> Action {
    match target {
        Target::Resource(path) => Action::Resource(resource_action(parts, path)),
        _ => Action::Path(PathAction { verb: parts.method.as_str().to_lowercase(), path: parts.uri.path().to_owned() }),
    }
}

fn resource_action(parts: &Parts, path: &ResourcePath) -> ResourceAction {
    let query = parts.uri.query().unwrap_or_default();
    let watches = super::options::Options::parse(query).is_ok_and(|options| options.watch);
    let is_namespace = path.resource == "namespaces" && path.group.is_empty();
    let namespace = if is_namespace { path.name.clone() } else { path.namespace.clone() };
    ResourceAction {
        verb: path.verb(&parts.method, watches).to_owned(),
        group: path.group.clone(),
        resource: path.resource.clone(),
        subresource: path.subresource.clone().unwrap_or_default(),
        namespace: namespace.unwrap_or_default(),
        name: path.name.clone().unwrap_or_default(),
        field_selector: Vec::new(),
    }
}

impl BoundObjects for State {
    fn find(&self, kind: BoundKind, namespace: &str, name: &str) -> Option<ObjectState> {
        let (resource, namespace) = match kind {
            BoundKind::ServiceAccount => ("/serviceaccounts", namespace),
            BoundKind::Pod => ("/pods", namespace),
            BoundKind::Secret => ("/secrets", namespace),
            BoundKind::Node => ("/nodes", ""),
        };
        let record = self.store.get(&Key::new(resource, namespace, name))?;
        let object: Value = serde_json::from_slice(&record.object).ok()?;
        Some(ObjectState::of(&object))
    }
}
