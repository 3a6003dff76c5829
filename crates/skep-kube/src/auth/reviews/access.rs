//! SubjectAccessReview and its relatives: may this user do that.

use serde_json::{Value, json};

use super::{AUTHORIZATION_VERSION, metadata, texts, without_empty};
use crate::auth::action::{Action, PathAction, ResourceAction};
use crate::auth::authorize::Authorizer;
use crate::auth::user::User;
use crate::status::{ApiError, FieldError, ResourceName};

/// May the user of the spec do it?
pub fn subject_access_review(review: &Value, authorizer: &dyn Authorizer) -> Result<Value, ApiError> {
    let spec = Spec::read(review);
    let mut errors = spec.attribute_errors();
    errors.extend(spec.subject_errors());
    errors.extend(metadata_error(review, None));
    answer("SubjectAccessReview", review, &spec, &spec.subject(), &errors, authorizer)
}

/// As [`subject_access_review`], for one namespace.
pub fn local_subject_access_review(
    review: &Value,
    namespace: &str,
    authorizer: &dyn Authorizer,
) -> Result<Value, ApiError> {
    let mut review = if review.is_object() { review.clone() } else { json!({}) };
    if !review.get("metadata").is_some_and(Value::is_object) {
        review["metadata"] = json!({});
    }
    let given = review.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    review["metadata"]["namespace"] = namespace.into();
    let spec = Spec::read(&review);
    let mut errors = spec.attribute_errors();
    errors.extend(spec.subject_errors());
    errors.extend(metadata_error(&review, Some(namespace)));
    if let Some(attributes) = spec.resource {
        let wanted = attributes.get("namespace").and_then(Value::as_str).unwrap_or_default();
        if wanted != namespace {
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, wanted, "must match metadata.namespace"));
        }
    }
    if let Some(attributes) = spec.path {
        let shown = shown_path(attributes);
        let detail = "disallowed on this kind of request";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", shown, detail));
    }
    answer("LocalSubjectAccessReview", &review, &spec, &spec.subject(), &errors, authorizer)
}

/// May I do it?
pub fn self_subject_access_review(review: &Value, user: &User, authorizer: &dyn Authorizer) -> Result<Value, ApiError> {
    let spec = Spec::read(review);
    let mut errors = spec.attribute_errors();
    errors.extend(metadata_error(review, None));
    answer("SelfSubjectAccessReview", review, &spec, user, &errors, authorizer)
}

fn answer(
    kind: &str,
    review: &Value,
    spec: &Spec<'_>,
    user: &User,
    errors: &[FieldError],
    authorizer: &dyn Authorizer,
) -> Result<Value, ApiError> {
    if !errors.is_empty() {
        // The real server leaves the kind out of this message.
        return Err(ApiError::invalid(&ResourceName::new("authorization.k8s.io", ""), "", errors));
    }
    let decision = authorizer.decide(user, &spec.action());
    let mut status = json!({ "allowed": decision.is_allowed() });
    if !decision.reason().is_empty() {
        status["reason"] = decision.reason().into();
    }
    let with_subject = kind != "SelfSubjectAccessReview";
    Ok(json!({
        "kind": kind,
        "apiVersion": AUTHORIZATION_VERSION,
        "metadata": metadata(review),
        "spec": spec.answer(with_subject),
        "status": status,
    }))
}

/// A review is not stored, so it has no name, labels or anything of the kind.
fn metadata_error(review: &Value, namespace: Option<&str>) -> Option<FieldError> {
    let metadata = without_empty(review.get("metadata").unwrap_or(&Value::Null));
    let allowed = |(field, value): (&String, &Value)| match field.as_str() {
        "managedFields" => true,
        "namespace" => namespace.is_some() && value.as_str() == namespace,
        _ => false,
    };
    if metadata.as_object().is_none_or(|fields| fields.iter().all(allowed)) {
        return None;
    }
    let detail = if namespace.is_some() { "must be empty except for namespace" } else { "must be empty" };
    Some(FieldError::invalid("metadata", metadata, detail))
}

fn shown_path(attributes: &Value) -> Value {
    let text = |field: &str| attributes.get(field).and_then(Value::as_str).unwrap_or_default();
    json!({ "Path": text("path"), "Verb": text("verb") })
}

/// The spec of a review.
struct Spec<'a> {
    document: &'a Value,
    resource: Option<&'a Value>,
    path: Option<&'a Value>,
}

impl<'a> Spec<'a> {
    fn read(review: &'a Value) -> Self {
        let spec = review.get("spec").unwrap_or(&Value::Null);
        let part = |field: &str| spec.get(field).filter(|value| value.is_object());
        Self { document: spec, resource: part("resourceAttributes"), path: part("nonResourceAttributes") }
    }

    fn text(&self, field: &str) -> &str {
        self.document.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn attribute_errors(&self) -> Vec<FieldError> {
        match (self.resource, self.path) {
            (Some(_), Some(path)) => {
                let detail = "cannot be specified in combination with resourceAttributes";
                vec![FieldError::invalid("spec.nonResourceAttributes", shown_path(path), detail)]
            }
            (None, None) => {
                let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                vec![FieldError::invalid("spec.resourceAttributes", Value::Null, detail)]
            }
            (Some(resource), None) => selector_errors(resource),
            (None, Some(_)) => Vec::new(),
        }
    }

    fn subject_errors(&self) -> Option<FieldError> {
        let nobody = self.text("user").is_empty() && texts(self.document.get("groups")).is_empty();
        nobody.then(|| FieldError::invalid("spec.user", "", "at least one of user or group must be specified"))
    }

    fn subject(&self) -> User {
        let mut user = User {
            name: self.text("user").to_owned(),
            uid: Some(self.text("uid").to_owned()).filter(|uid| !uid.is_empty()),
            groups: texts(self.document.get("groups")),
            ..User::default()
        };
        for (key, values) in self.document.get("extra").and_then(Value::as_object).into_iter().flatten() {
            user.extra.insert(key.to_lowercase(), texts(Some(values)));
        }
        user
    }

    fn action(&self) -> Action {
        let part = self.resource.or(self.path).unwrap_or(&Value::Null);
        let text = |field: &str| part.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        if self.resource.is_none() {
            return Action::Path(PathAction { verb: text("verb"), path: text("path") });
        }
        Action::Resource(ResourceAction {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
            field_selector: field_requirements(part),
        })
    }

    fn answer(&self, with_subject: bool) -> Value {
        let mut document = json!({});
        for (field, part) in [("resourceAttributes", self.resource), ("nonResourceAttributes", self.path)] {
            if let Some(part) = part {
                document[field] = without_empty(part);
            }
        }
        if with_subject {
            let subject = without_empty(self.document);
            for field in ["user", "groups", "extra", "uid"] {
                if let Some(value) = subject.get(field) {
                    document[field] = value.clone();
                }
            }
        }
        document
    }
}

fn selector_errors(resource: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for selector in ["fieldSelector", "labelSelector"] {
        let Some(given) = resource.get(selector).filter(|value| value.is_object()) else {
            continue;
        };
        let path = format!("spec.resourceAttributes.{selector}");
        let raw = given.get("rawSelector").and_then(Value::as_str).unwrap_or_default();
        let requirements = given.get("requirements").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !raw.is_empty() && requirements {
            let detail = "may not specified at the same time as requirements";
            errors.push(FieldError::invalid(format!("{path}.rawSelector"), raw, detail));
        } else if raw.is_empty() && !requirements {
            let detail = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(format!("{path}.requirements"), detail));
        } else if requirements {
            let list = given.get("requirements").and_then(Value::as_array).into_iter().flatten();
            for (index, requirement) in list.enumerate() {
                errors.extend(requirement_errors(&format!("{path}.requirements[{index}]"), requirement));
            }
        }
    }
    errors
}

fn requirement_errors(path: &str, requirement: &Value) -> Vec<FieldError> {
    let text = |field: &str| requirement.get(field).and_then(Value::as_str).unwrap_or_default();
    let has_values = !texts(requirement.get("values")).is_empty();
    let mut errors = Vec::new();
    if text("key").is_empty() {
        errors.push(FieldError::required(format!("{path}.key"), "must be specified"));
    }
    match (text("operator"), has_values) {
        ("In" | "NotIn", false) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{path}.values"), detail));
        }
        ("Exists" | "DoesNotExist", true) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{path}.values"), detail));
        }
        _ => {}
    }
    errors
}

/// The `field = value` requirements of a field selector. Others only narrow a list and decide nothing here.
fn field_requirements(resource: &Value) -> Vec<(String, String)> {
    let Some(selector) = resource.get("fieldSelector") else {
        return Vec::new();
    };
    if let Some(raw) = selector.get("rawSelector").and_then(Value::as_str) {
        let equal = |part: &str| {
            let (field, value) = part.split_once('=').filter(|(field, _)| !field.ends_with('!'))?;
            Some((field.trim().to_owned(), value.trim_start_matches('=').trim().to_owned()))
        };
        return raw.split(',').filter_map(equal).collect();
    }
    let requirements = selector.get("requirements").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let equal = |requirement: &Value| {
        let values = texts(requirement.get("values"));
        let is_in = requirement.get("operator").and_then(Value::as_str) == Some("In");
        let [value] = values.as_slice() else {
            return None;
        };
        is_in.then(|| Some((requirement.get("key")?.as_str()?.to_owned(), value.clone())))?
    };
    requirements.iter().filter_map(equal).collect()
}
