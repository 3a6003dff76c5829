//! Requests that are not answered with a result, as HTTP says it.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::Value;

use crate::demo::message::{
    Fault, HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, PARSE_ERROR, SESSION_NOT_FOUND,
    TRANSPORT_ERROR, UNSUPPORTED_REVISION,
};

/// A refused request.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    fault: Fault,
    id: Option<Value>,
}

impl Refusal {
    /// A refusal by the transport, before any message was looked at.
    pub(super) fn transport(status: StatusCode, message: &str) -> Self {
        Self { status, fault: Fault::new(TRANSPORT_ERROR, message), id: None }
    }

    /// A message that cannot be taken as it is.
    pub(super) fn bad(fault: Fault, id: Option<Value>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, fault, id }
    }

    /// A message that cannot be taken now.
    pub(super) fn busy(fault: Fault, id: Option<Value>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, fault, id }
    }

    pub(super) fn no_such_session(id: Option<Value>) -> Self {
        Self { status: StatusCode::NOT_FOUND, fault: Fault::new(SESSION_NOT_FOUND, "Session not found"), id }
    }

    pub(super) fn session_required(id: Option<Value>) -> Self {
        Self::bad(Fault::new(TRANSPORT_ERROR, "the header Mcp-Session-Id is missing"), id)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        super::json(self.status, &self.fault.answer(self.id.as_ref()))
    }
}

/// The status of an answer to a request that stands alone.
pub(super) fn status(outcome: Result<&Value, &Fault>) -> StatusCode {
    match outcome.map_err(|fault| fault.code) {
        Err(HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_REVISION | PARSE_ERROR | INVALID_REQUEST) => {
            StatusCode::BAD_REQUEST
        }
        Err(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}
