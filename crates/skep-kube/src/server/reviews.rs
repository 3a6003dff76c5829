//! Resources that are questions: they are created, answered and forgotten.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::Value;

use super::State;
use super::content;
use super::exchange::warning_header;
use super::negotiate::Encoding;
use super::path::ResourcePath;
use super::write::Expected;
use crate::auth::{User, reviews};
use crate::status::ApiError;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Where questions about the whole cluster are asked: no namespace, no name, no part of an object.
const EVERYWHERE: (bool, bool, Option<&str>) = (false, false, None);

/// What is asked with a path, if it is that of a question.
pub fn question(path: &ResourcePath) -> Option<Expected<'static>> {
    let place = (path.namespace.is_some(), path.name.is_some(), path.subresource.as_deref());
    let (group, kind, wanted) = match (path.group.as_str(), path.resource.as_str()) {
        _ if path.version != "v1" || path.watch => return None,
        (AUTHENTICATION, "tokenreviews") => (AUTHENTICATION, "TokenReview", EVERYWHERE),
        (AUTHENTICATION, "selfsubjectreviews") => (AUTHENTICATION, "SelfSubjectReview", EVERYWHERE),
        (AUTHORIZATION, "subjectaccessreviews") => (AUTHORIZATION, "SubjectAccessReview", EVERYWHERE),
        (AUTHORIZATION, "selfsubjectaccessreviews") => (AUTHORIZATION, "SelfSubjectAccessReview", EVERYWHERE),
        (AUTHORIZATION, "selfsubjectrulesreviews") => (AUTHORIZATION, "SelfSubjectRulesReview", EVERYWHERE),
        (AUTHORIZATION, "localsubjectaccessreviews") => {
            (AUTHORIZATION, "LocalSubjectAccessReview", (true, false, None))
        }
        ("", "serviceaccounts") => (AUTHENTICATION, "TokenRequest", (true, true, Some("token"))),
        _ => return None,
    };
    (place == wanted).then(|| Expected::question(group, kind))
}

/// Answers a question.
pub fn answer(
    state: &State,
    user: &User,
    path: &ResourcePath,
    question: &Value,
    encoding: Encoding,
) -> Result<Response<Body>, ApiError> {
    let now = k8s_openapi::jiff::Timestamp::now().as_second();
    let access = &state.access;
    let mut warning = None;
    let answer: Value = match path.resource.as_str() {
        "tokenreviews" => reviews::token_review(question, &access.tokens, state, now)?,
        "selfsubjectreviews" => reviews::self_subject_review(user, now),
        "subjectaccessreviews" => {
            access.with_authorizer(|authorizer| reviews::subject_access_review(question, authorizer))?
        }
        "selfsubjectaccessreviews" => {
            access.with_authorizer(|authorizer| reviews::self_subject_access_review(question, user, authorizer))?
        }
        "selfsubjectrulesreviews" => {
            access.with_authorizer(|authorizer| reviews::self_subject_rules_review(question, user, authorizer))?
        }
        "localsubjectaccessreviews" => {
            let namespace = path.namespace.as_deref().unwrap_or_default();
            access
                .with_authorizer(|authorizer| reviews::local_subject_access_review(question, namespace, authorizer))?
        }
        _ => {
            let (namespace, name) =
                (path.namespace.as_deref().unwrap_or_default(), path.name.as_deref().unwrap_or_default());
            state.restrict_token(user, path, question)?;
            let issued = access.tokens.issue(namespace, name, question, state, now)?;
            warning = issued.warning;
            issued.document
        }
    };
    let mut response = Response::builder().status(StatusCode::CREATED);
    if let Some(warning) = warning {
        response = response.header("Warning", warning_header(&warning));
    }
    Ok(content::reply(response, encoding, answer.to_string().into()))
}
