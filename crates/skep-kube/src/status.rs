//! What the server says when it cannot do what it was asked to: Kubernetes `Status` objects, with the reasons, codes
//! and wording that clients know.

use serde_json::{Value, json};

use crate::go_text;

/// Why a request failed, as clients match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
    /// No reason at all: the server cannot tell either.
    Unknown,
    UnsupportedMediaType,
}

impl Reason {
    /// The reason as it stands in a Status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AlreadyExists => "AlreadyExists",
            Self::BadRequest => "BadRequest",
            Self::Conflict => "Conflict",
            Self::Expired => "Expired",
            Self::Forbidden => "Forbidden",
            Self::Gone => "Gone",
            Self::InternalError => "InternalError",
            Self::Invalid => "Invalid",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::NotFound => "NotFound",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
            Self::TooManyRequests => "TooManyRequests",
            Self::Unauthorized => "Unauthorized",
            Self::Unknown => "",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
        }
    }

    /// The HTTP status that goes with it.
    pub const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired | Self::Gone => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::Unknown => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
        }
    }
}

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

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// The path, such as `spec.containers[0].image`.
    pub field: String,
    pub problem: Problem,
    /// Further words, often empty.
    pub detail: String,
}

/// The kinds of problems that Kubernetes tells apart.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    Required,
    Forbidden,
    TooLong,
    Internal,
    Invalid(Value),
    /// As `Invalid`, for a value that is better not shown.
    InvalidHidden,
    Duplicate(Value),
    /// As `Duplicate`, for a value that is not shown.
    DuplicateHidden,
    NotFound(Value),
    /// A value outside a list of known ones.
    NotSupported(Value),
    TooMany(Value),
    TypeInvalid(Value),
    /// As `Invalid`, for a struct that is already written out: the order of its members is part of the wording.
    InvalidStruct(String),
    /// As `NotSupported`, likewise.
    NotSupportedStruct(String),
    /// As `Duplicate`, likewise.
    DuplicateStruct(String),
}

impl FieldError {
    pub fn new(field: impl Into<String>, problem: Problem, detail: impl Into<String>) -> Self {
        Self { field: field.into(), problem, detail: detail.into() }
    }

    /// Errors in one line, each once.
    pub fn list(errors: &[Self]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for error in errors {
            let line = error.to_string();
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if let [only] = lines.as_slice() { only.clone() } else { format!("[{}]", lines.join(", ")) }
    }

    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Required, detail)
    }

    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Forbidden, detail)
    }

    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, Problem::Invalid(value.into()), detail)
    }

    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(field, Problem::Duplicate(value.into()), "")
    }

    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> Self {
        let mut supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        supported.sort();
        let detail = format!("supported values: {}", supported.join(", "));
        Self::new(field, Problem::NotSupported(value.into()), detail)
    }

    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(field, Problem::TooLong, format!("may not be more than {limit} {unit}"))
    }

    pub fn too_many(field: impl Into<String>, found: usize, limit: usize) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {unit}");
        Self::new(field, Problem::TooMany(found.into()), detail)
    }

    /// Everything but the field: `Invalid value: 0: must be greater than zero`.
    pub fn body(&self) -> String {
        let (words, value) = match &self.problem {
            Problem::Required => ("Required value", None),
            Problem::Forbidden => ("Forbidden", None),
            Problem::TooLong => ("Too long", None),
            Problem::Internal => ("Internal error", None),
            Problem::InvalidHidden | Problem::InvalidStruct(_) => ("Invalid value", None),
            Problem::NotSupportedStruct(_) => ("Unsupported value", None),
            Problem::Invalid(value) | Problem::TypeInvalid(value) => ("Invalid value", Some(value)),
            Problem::Duplicate(value) => ("Duplicate value", Some(value)),
            Problem::DuplicateHidden | Problem::DuplicateStruct(_) => ("Duplicate value", None),
            Problem::NotFound(value) => ("Not found", Some(value)),
            Problem::NotSupported(value) => ("Unsupported value", Some(value)),
            Problem::TooMany(value) => ("Too many", Some(value)),
        };
        let mut body = words.to_owned();
        let struct_text = match &self.problem {
            Problem::InvalidStruct(text) | Problem::NotSupportedStruct(text) | Problem::DuplicateStruct(text) => {
                Some(text.clone())
            }
            _ => None,
        };
        if let Some(text) = struct_text.or_else(|| value.map(shown)) {
            body.push_str(": ");
            body.push_str(&text);
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    fn cause(&self) -> Cause {
        let reason = match self.problem {
            Problem::Required => "FieldValueRequired",
            Problem::Forbidden => "FieldValueForbidden",
            Problem::TooLong => "FieldValueTooLong",
            Problem::Internal => "InternalError",
            Problem::Invalid(_) | Problem::InvalidHidden | Problem::InvalidStruct(_) => "FieldValueInvalid",
            Problem::TypeInvalid(_) => "FieldValueTypeInvalid",
            Problem::Duplicate(_) | Problem::DuplicateHidden | Problem::DuplicateStruct(_) => "FieldValueDuplicate",
            Problem::NotFound(_) => "FieldValueNotFound",
            Problem::NotSupported(_) | Problem::NotSupportedStruct(_) => "FieldValueNotSupported",
            Problem::TooMany(_) => "FieldValueTooMany",
        };
        let field = Some(self.field.clone());
        Cause { reason: reason.to_owned(), message: self.body(), field }
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.field, self.body())
    }
}

/// Numbers and booleans bare, strings quoted, everything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => go_text::quoted(text),
        Value::Number(number) => go_text::number(number),
        Value::Bool(flag) => flag.to_string(),
        other => go_text::json(other),
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
