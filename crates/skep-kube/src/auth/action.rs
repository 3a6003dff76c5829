//! What somebody wants to do, as authorizers judge it, and the words for refusing it.

use super::user::User;
use crate::go_text::quoted;
use crate::status::{ApiError, Reason, ResourceName};

/// One request, reduced to what matters for whether it is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Resource(ResourceAction),
    Path(PathAction),
}

/// Something done to a resource. Absent parts are empty, as on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceAction {
    pub verb: String,
    pub group: String,
    /// The plural name.
    pub resource: String,
    pub subresource: String,
    /// Empty at the cluster scope. A request about the Namespace `x` itself counts as one in `x`.
    pub namespace: String,
    /// Empty for lists and creations, unless a field selector asks for one name.
    pub name: String,
    /// The `field = value` requirements of a list or watch.
    pub field_selector: Vec<(String, String)>,
}

impl ResourceAction {
    /// The resource with its subresource: `deployments/scale`.
    pub fn full_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}

/// Something done to a path that is no resource.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathAction {
    /// The method in lower case.
    pub verb: String,
    pub path: String,
}

/// The answer to a request that no authorizer allowed. `reason` is what they had to say, often nothing.
pub fn forbidden(user: &User, action: &Action, reason: &str) -> ApiError {
    let wanted = match action {
        Action::Path(PathAction { verb, path }) => format!("{verb} path {}", quoted(path)),
        Action::Resource(action) => {
            let scope = if action.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {}", quoted(&action.namespace))
            };
            let (resource, group) = (quoted(&action.full_resource()), quoted(&action.group));
            format!("{} resource {resource} in API group {group} {scope}", action.verb)
        }
    };
    let colon = if reason.is_empty() { "" } else { ": " };
    let why = format!("User {} cannot {wanted}{colon}{reason}", quoted(&user.name));
    match action {
        Action::Path(_) => ApiError::new(Reason::Forbidden, format!("forbidden: {why}")),
        Action::Resource(action) => {
            ApiError::forbidden(&ResourceName::new(&action.group, &action.resource), &action.name, &why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user() -> User {
        User::new("bob", &[])
    }

    #[test]
    fn words_for_a_named_object_a_subresource_and_the_cluster_scope() {
        let mut action = ResourceAction {
            verb: "get".into(),
            group: "apps".into(),
            resource: "deployments".into(),
            subresource: "scale".into(),
            namespace: "default".into(),
            name: "x".into(),
            field_selector: Vec::new(),
        };
        assert_eq!(
            forbidden(&user(), &Action::Resource(action.clone()), "").message,
            r#"deployments.apps "x" is forbidden: User "bob" cannot get resource "deployments/scale" in API group "apps" in the namespace "default""#
        );
        action = ResourceAction { verb: "list".into(), resource: "pods".into(), ..ResourceAction::default() };
        let error = forbidden(&user(), &Action::Resource(action), "no luck");
        assert_eq!(
            error.message,
            r#"pods is forbidden: User "bob" cannot list resource "pods" in API group "" at the cluster scope: no luck"#
        );
        assert_eq!(error.status()["details"], json!({ "kind": "pods" }));
    }

    #[test]
    fn a_path_is_quoted_and_has_empty_details() {
        let action = Action::Path(PathAction { verb: "get".into(), path: "/nope/\"qé\n".into() });
        let error = forbidden(&user(), &action, "");
        assert_eq!(error.message, r#"forbidden: User "bob" cannot get path "/nope/\"qé\n""#);
        assert_eq!(error.status()["details"], json!({}));
    }
}
