//! What the server says when it cannot do what it was asked to: Kubernetes `Status` objects, with the reasons, codes
//! and wording that clients know.

mod field;
mod reason;

pub use field::{FieldError, Problem};
pub use reason::Reason;

use serde_json::{Value, json};

/// A resource as errors name it: `deployments.apps`, or `pods` in the core group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceName {
    pub group: String,
    /// The plural name in most errors; the kind in those about validation.
    pub name: String,
}

impl ResourceName {
    pub fn new(group: &str, name: &str) -> Self {
        Self { group: group.to_owned(), name: name.to_owned() }
    }
}

impl std::fmt::Display for ResourceName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        Ok(())
    }
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub reason: Reason,
    pub message: String,
    /// What the request was about, when it was about one resource.
    pub resource: Option<ResourceName>,
    /// The name of the object, when it was about one.
    pub name: Option<String>,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: Option<u32>,
    /// How to go on with a list all the same.
    pub continue_: Option<String>,
}

/// One of several reasons, usually about one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: Option<String>,
}

/// How a write that comes too late is told so.
const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

impl ApiError {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            resource: None,
            name: None,
            causes: Vec::new(),
            retry_after_seconds: None,
            continue_: None,
        }
    }

    fn about(mut self, resource: &ResourceName, name: &str) -> Self {
        self.resource = Some(resource.clone());
        self.name = (!name.is_empty()).then(|| name.to_owned());
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    pub fn internal(message: &str) -> Self {
        Self::new(Reason::InternalError, format!("Internal error occurred: {message}"))
    }

    /// An object that does not exist.
    pub fn not_found(resource: &ResourceName, name: &str) -> Self {
        Self::new(Reason::NotFound, format!("{resource} {name:?} not found")).about(resource, name)
    }

    /// A path that leads nowhere.
    pub fn no_such_path() -> Self {
        Self::new(Reason::NotFound, "the server could not find the requested resource")
    }

    pub fn already_exists(resource: &ResourceName, name: &str) -> Self {
        Self::new(Reason::AlreadyExists, format!("{resource} {name:?} already exists")).about(resource, name)
    }

    /// As [`Self::already_exists`], for an object that left its name to the server.
    pub fn no_unique_name(resource: &ResourceName, name: &str) -> Self {
        let why = "the server was not able to generate a unique name for the object";
        let message = format!("{resource} {name:?} already exists, {why}");
        let mut error = Self::new(Reason::AlreadyExists, message).about(resource, name);
        error.retry_after_seconds = Some(1);
        error
    }

    pub fn conflict(resource: &ResourceName, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(Reason::Conflict, message).about(resource, name)
    }

    /// The object has changed since the caller read it.
    pub fn modified(resource: &ResourceName, name: &str) -> Self {
        Self::conflict(resource, name, MODIFIED)
    }

    pub fn forbidden(resource: &ResourceName, name: &str, why: &str) -> Self {
        let subject = if name.is_empty() { resource.to_string() } else { format!("{resource} {name:?}") };
        Self::new(Reason::Forbidden, format!("{subject} is forbidden: {why}")).about(resource, name)
    }

    pub fn unauthorized() -> Self {
        Self::new(Reason::Unauthorized, "Unauthorized")
    }

    /// A patch of a built-in object in a form that nobody knows.
    pub fn unsupported_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(Reason::UnsupportedMediaType, message).about(&ResourceName::default(), "")
    }

    pub fn method_not_allowed() -> Self {
        Self::new(Reason::MethodNotAllowed, "the server does not allow this method on the requested resource")
    }

    /// What cannot be done with the objects of a custom resource.
    pub fn method_not_supported(resource: &ResourceName, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::new(Reason::MethodNotAllowed, message).about(resource, "")
    }

    /// A revision that has been compacted away.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(Reason::Expired, message)
    }

    /// An object that breaks its rules. `kind` names the kind, not the plural.
    pub fn invalid(kind: &ResourceName, name: &str, errors: &[FieldError]) -> Self {
        let list = FieldError::list(errors);
        let mut error = Self::new(Reason::Invalid, format!("{kind} {name:?} is invalid: {list}")).about(kind, name);
        error.causes = errors.iter().map(FieldError::cause).collect();
        error
    }

    /// Whether somebody else has changed the object meanwhile, so that another attempt may do.
    pub fn is_about_a_change(&self) -> bool {
        self.reason == Reason::Conflict && self.message.ends_with(MODIFIED)
    }

    /// The Status object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.reason.code(),
        });
        if self.reason != Reason::Unknown {
            status["reason"] = self.reason.name().into();
        }
        if let Some(token) = &self.continue_ {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    fn details(&self) -> Option<Value> {
        let mut details = serde_json::Map::new();
        if let Some(name) = &self.name {
            details.insert("name".into(), name.as_str().into());
        }
        if let Some(resource) = &self.resource {
            if !resource.group.is_empty() {
                details.insert("group".into(), resource.group.as_str().into());
            }
            if !resource.name.is_empty() {
                details.insert("kind".into(), resource.name.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            details.insert("causes".into(), self.causes.iter().map(Cause::document).collect());
        }
        if let Some(seconds) = self.retry_after_seconds {
            details.insert("retryAfterSeconds".into(), seconds.into());
        }
        // Paths and methods that do not exist or are forbidden are answered with empty details, and so are patches that
        // cannot be applied, and whatever is said to be about no resource in particular.
        let empty_details = [Reason::NotFound, Reason::MethodNotAllowed, Reason::Forbidden, Reason::Invalid];
        let has_details = !details.is_empty() || self.resource.is_some() || empty_details.contains(&self.reason);
        has_details.then_some(Value::Object(details))
    }
}

impl Cause {
    fn document(&self) -> Value {
        let mut cause = json!({ "reason": self.reason, "message": self.message });
        if let Some(field) = &self.field {
            cause["field"] = field.as_str().into();
        }
        cause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_error_stands_alone_and_several_in_brackets() {
        let kind = ResourceName::new("apps", "Deployment");
        let missing = FieldError::required("spec.selector", "");
        let bad = FieldError::invalid("spec.replicas", -1, "must be greater than or equal to 0");
        let one = ApiError::invalid(&kind, "web", std::slice::from_ref(&missing));
        assert_eq!(one.message, r#"Deployment.apps "web" is invalid: spec.selector: Required value"#);
        let two = ApiError::invalid(&kind, "web", &[missing, bad]);
        assert_eq!(
            two.message,
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value, \
             spec.replicas: Invalid value: -1: must be greater than or equal to 0]"
        );
        assert_eq!(two.status()["details"]["causes"][1]["reason"], "FieldValueInvalid");
    }

    #[test]
    fn a_missing_object_is_named_with_its_group() {
        let error = ApiError::not_found(&ResourceName::new("apps", "deployments"), "web");
        assert_eq!(
            error.status(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "deployments.apps \"web\" not found", "reason": "NotFound", "code": 404,
                "details": { "name": "web", "group": "apps", "kind": "deployments" },
            })
        );
    }
}
