//! Who asks, and may they: the server's side of [`crate::auth`].

use std::sync::Arc;

use http::request::Parts;
use serde_json::Value;

use super::State;
use super::connections::Seat;
use super::exchange::{Exchange, header};
use super::options::Options;
use super::path::{ResourcePath, Target};
use super::roles::Roles;
use crate::auth::identity::Certificate;
use crate::auth::node::NodeAuthorizer;
use crate::auth::rbac::{EscalationCheck, Rbac, RoleIndex};
use crate::auth::tokens::{BoundKind, BoundObjects, ObjectState, TokenAuthority};
use crate::auth::user::UNAUTHENTICATED_GROUP;
use crate::auth::{Action, Authorizer, Authorizers, PathAction, ResourceAction, User, identity, impersonation};
use crate::selector::FieldSelector;
use crate::status::ApiError;
use crate::store::{Key, Store};

/// What is known about users and their rights.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) tokens: TokenAuthority,
    roles: Roles,
    store: Store,
}

impl Access {
    pub(crate) fn new(tokens: TokenAuthority, store: Store) -> Self {
        Self { tokens, roles: Roles::of(store.clone()), store }
    }

    /// Whether a user may write a role or binding: nobody hands out what they do not hold.
    pub(crate) fn check_escalation(&self, user: &User, old: Option<&Value>, new: &Value) -> Result<(), ApiError> {
        let roles = self.roles.now();
        self.authorized_by(&roles, |authorizer| EscalationCheck { source: &*roles, authorizer }.check(user, old, new))
    }

    /// Asks with the roles as they are now.
    pub(crate) fn with_authorizer<R>(&self, ask: impl FnOnce(&dyn Authorizer) -> R) -> R {
        self.authorized_by(&self.roles.now(), ask)
    }

    /// Nodes are asked about before roles, as on a real server.
    fn authorized_by<R>(&self, roles: &RoleIndex, ask: impl FnOnce(&dyn Authorizer) -> R) -> R {
        let (nodes, rbac) = (NodeAuthorizer::new(&self.store), Rbac(roles));
        ask(&Authorizers(vec![&nodes, &rbac]))
    }
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
        // A connection whose client is known is not the first one to go when there are too many.
        if !user.is_in(UNAUTHENTICATED_GROUP)
            && let Some(seat) = parts.extensions.get::<Arc<Seat>>()
        {
            seat.recognise();
        }
        let impersonated =
            self.access.with_authorizer(|authorizer| impersonation::impersonate(&user, &parts.headers, authorizer))?;
        Ok(impersonated.unwrap_or(user))
    }

    /// Whether a user may do what a request wants. `path` is the one that `target` was read from.
    pub(crate) fn authorize(&self, user: &User, parts: &Parts, path: &str, target: &Target) -> Result<(), ApiError> {
        let action = match target {
            Target::Resource(path) => Action::Resource(resource_action(parts, path)),
            _ => Action::Path(PathAction { verb: parts.method.as_str().to_lowercase(), path: path.to_owned() }),
        };
        self.access.with_authorizer(|authorizer| authorizer.check(user, &action))
    }

    /// Whether the user of a request may create the object that it wants to change, and that is not there.
    pub(crate) fn authorize_creation(&self, exchange: &Exchange) -> Result<(), ApiError> {
        let action = Action::Resource(ResourceAction {
            verb: "create".to_owned(),
            group: exchange.path.group.clone(),
            resource: exchange.path.resource.clone(),
            namespace: exchange.namespace().to_owned(),
            name: exchange.name().to_owned(),
            ..ResourceAction::default()
        });
        self.access.with_authorizer(|authorizer| authorizer.check(&exchange.user, &action))
    }
}

fn resource_action(parts: &Parts, path: &ResourcePath) -> ResourceAction {
    // A query that cannot be read is refused later.
    let options = Options::parse(parts.uri.query().unwrap_or_default()).unwrap_or_default();
    let verb = path.verb(&parts.method, options.watch);
    let selector = match verb {
        "list" | "watch" | "deletecollection" if !path.watch => {
            FieldSelector::parse(&options.field_selector).unwrap_or_default()
        }
        _ => FieldSelector::default(),
    };
    // Who may see one object may list and watch that one.
    let selected = selector.name().filter(|name| verb != "deletecollection" && is_segment(name));
    let is_namespace = path.resource == "namespaces" && path.group.is_empty();
    let namespace = if is_namespace { path.name.clone() } else { path.namespace.clone() };
    ResourceAction {
        verb: verb.to_owned(),
        group: path.group.clone(),
        resource: path.resource.clone(),
        subresource: path.subresource.clone().unwrap_or_default(),
        namespace: namespace.unwrap_or_default(),
        name: path.name.as_deref().or(selected).unwrap_or_default().to_owned(),
        field_selector: selector.equalities().map(|(field, value)| (field.to_owned(), value.to_owned())).collect(),
    }
}

/// Whether a name could be that of an object in a path.
fn is_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
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
        let object: Value = serde_json::from_slice(&record.object.bytes()).ok()?;
        Some(ObjectState::of(&object))
    }
}
