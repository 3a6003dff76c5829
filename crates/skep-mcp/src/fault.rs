//! Errors as JSON-RPC tells them.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::id::Id;

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is JSON, but nothing that may be sent here.
pub const INVALID_REQUEST: i64 = -32600;
/// There is no such method in the revision of the request.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method does not understand what it was given.
pub const INVALID_PARAMS: i64 = -32602;
/// The server is at fault.
pub const INTERNAL_ERROR: i64 = -32603;
/// A fault of the transport in revisions with sessions, by the convention of their SDKs; also a timeout.
pub const TRANSPORT_ERROR: i64 = -32000;
/// The session has ended or never was.
pub const SESSION_NOT_FOUND: i64 = -32001;
/// There is no such resource, in revisions with sessions.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A person has to visit pages first, in revision 2025-11-25.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;
/// A header disagrees with the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare.
pub const MISSING_CAPABILITY: i64 = -32021;
/// The server does not speak the revision of the request.
pub const UNSUPPORTED_REVISION: i64 = -32022;

/// Why a request is not answered with a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// One of the codes of this module, or a peer's own.
    pub code: i64,
    /// For a person.
    pub message: Cow<'static, str>,
    /// For a program.
    pub data: Option<Value>,
}

impl Fault {
    /// A fault without data.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same with data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The answer with this fault. Where no id could be read there is none, which is not the same as null.
    pub fn answer(&self, id: Option<&Id>) -> String {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        match id {
            Some(id) => format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.as_json()),
            None => format!(r#"{{"jsonrpc":"2.0","error":{error}}}"#),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_told_as_it_came_or_not_at_all() {
        let fault = Fault::new(SESSION_NOT_FOUND, "Session not found");
        let zero = fault.answer(Some(&Id::from(0)));
        assert_eq!(zero, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32001,"message":"Session not found"}}"#);
        assert!(!fault.answer(None).contains("id"));
        assert!(fault.with_data(json!({"a": 1})).answer(None).contains(r#""data":{"a":1}"#));
    }
}
