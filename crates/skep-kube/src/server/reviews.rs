//! Resources that are questions: they are created, answered and forgotten.

use axum::body::Body;
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use serde_json::Value;

use super::State;
use super::exchange::warning_header;
use super::path::ResourcePath;
use crate::auth::{User, reviews};
use crate::decode::decode_strict;
use crate::status::ApiError;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Whether a path is that of a question.
pub fn is_question(path: &ResourcePath) -> bool {
    path.version == "v1"
        && matches!(
            (path.group.as_str(), path.resource.as_str(), path.subresource.as_deref()),
            (AUTHENTICATION, "tokenreviews" | "selfsubjectreviews", None)
                | (
                    AUTHORIZATION,
                    "subjectaccessreviews"
                        | "selfsubjectaccessreviews"
                        | "selfsubjectrulesreviews"
                        | "localsubjectaccessreviews",
                    None
                )
                | ("", "serviceaccounts", Some("token"))
        )
}

/// Answers a question.
pub fn answer(state: &State, user: &User, path: &ResourcePath, body: &[u8]) -> Result<Response<Body>, ApiError> {
    let question = decode_strict(body).map_err(|error| ApiError::bad_request(error.to_string()))?.0;
    let now = k8s_openapi::jiff::Timestamp::now().as_second();
    let access = &state.access;
    let mut warning = None;
    let answer: Value = match path.resource.as_str() {
        "tokenreviews" => reviews::token_review(&question, &access.tokens, state, now)?,
        "selfsubjectreviews" => reviews::self_subject_review(user, now),
        "subjectaccessreviews" => {
            access.with_authorizer(|authorizer| reviews::subject_access_review(&question, authorizer))?
        }
        "selfsubjectaccessreviews" => {
            access.with_authorizer(|authorizer| reviews::self_subject_access_review(&question, user, authorizer))?
        }
        "selfsubjectrulesreviews" => {
            access.with_authorizer(|authorizer| reviews::self_subject_rules_review(&question, user, authorizer))?
        }
        "localsubjectaccessreviews" => {
            let namespace = path.namespace.as_deref().unwrap_or_default();
            access
                .with_authorizer(|authorizer| reviews::local_subject_access_review(&question, namespace, authorizer))?
        }
        _ => {
            let (namespace, name) =
                (path.namespace.as_deref().unwrap_or_default(), path.name.as_deref().unwrap_or_default());
            let issued = access.tokens.issue(namespace, name, &question, state, now)?;
            warning = issued.warning;
            issued.document
        }
    };
    let mut response = Response::builder().status(StatusCode::CREATED).header(CONTENT_TYPE, "application/json");
    if let Some(warning) = warning {
        response = response.header("Warning", warning_header(&warning));
    }
    Ok(response.body(Body::from(answer.to_string())).unwrap_or_default())
}
