//! JSON-RPC as the protocol uses it: reading messages and writing answers.

use serde_json::{Map, Value, json};

/// The members of an object.
pub(crate) type Members = Map<String, Value>;

/// One message of a client.
#[derive(Debug)]
pub(crate) enum Message {
    Request(Request),
    Notification { method: String, params: Members },
    Response { id: Value, outcome: Result<Value, Fault> },
}

/// A message that wants an answer.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Members,
}

impl Request {
    /// What the client says about the request itself.
    pub(crate) fn meta(&self) -> Option<&Members> {
        self.params.get("_meta").and_then(Value::as_object)
    }
}

/// Why a request is not answered with a result.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// The message is not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// The message is JSON, but nothing that may be sent here.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// There is no such method in the revision of the request.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The method does not understand what it was given.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// The server is at fault.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// A fault of the transport in revisions with sessions, by the convention of their SDKs.
pub(crate) const TRANSPORT_ERROR: i64 = -32000;
/// The session has ended or never was.
pub(crate) const SESSION_NOT_FOUND: i64 = -32001;
/// There is no such resource, in revisions with sessions.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header disagrees with the body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare.
pub(crate) const MISSING_CAPABILITY: i64 = -32021;
/// The server does not speak the revision of the request.
pub(crate) const UNSUPPORTED_REVISION: i64 = -32022;

impl Fault {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// The answer with this fault. One to a message whose id could not be read has none.
    pub(crate) fn answer(self, id: Option<&Value>) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = self.data {
            error["data"] = data;
        }
        let mut answer = json!({"jsonrpc": "2.0", "error": error});
        if let Some(id) = id {
            answer["id"] = id.clone();
        }
        answer
    }
}

/// The answer to a request.
pub(crate) fn answer(id: &Value, outcome: Result<Value, Fault>) -> Value {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(fault) => fault.answer(Some(id)),
    }
}

/// A message of the server that wants no answer.
pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The JSON of a body or a line.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(bytes).map_err(|error| Fault::new(PARSE_ERROR, format!("Parse error: {error}")))
}

/// The id of something that may be no message at all, for the answer that says so.
pub(crate) fn readable_id(value: &Value) -> Option<Value> {
    value.get("id").filter(|id| id.is_string() || id.is_number()).cloned()
}

impl Message {
    /// Takes a parsed message apart.
    pub(crate) fn read(value: Value) -> Result<Self, Fault> {
        let invalid = |reason: &str| Fault::new(INVALID_REQUEST, format!("Invalid request: {reason}"));
        let Value::Object(mut members) = value else {
            return Err(invalid("a message is an object"));
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let id = members.remove("id");
        if id.as_ref().is_some_and(|id| !id.is_string() && !id.is_number()) {
            return Err(invalid("an id is a string or a number"));
        }
        match (members.remove("method"), id) {
            (Some(Value::String(method)), id) => {
                let params = match members.remove("params") {
                    None => Members::new(),
                    Some(Value::Object(params)) => params,
                    Some(_) => return Err(invalid("params must be an object")),
                };
                Ok(match id {
                    Some(id) => Self::Request(Request { id, method, params }),
                    None => Self::Notification { method, params },
                })
            }
            (None, Some(id)) => match (members.remove("result"), members.remove("error")) {
                (Some(result), None) => Ok(Self::Response { id, outcome: Ok(result) }),
                (None, Some(error)) => Ok(Self::Response { id, outcome: Err(client_fault(&error)) }),
                _ => Err(invalid("a response has a result or an error")),
            },
            _ => Err(invalid("it is neither a request, a notification nor a response")),
        }
    }
}

fn client_fault(error: &Value) -> Fault {
    let code = error["code"].as_i64().unwrap_or(INTERNAL_ERROR);
    Fault::new(code, error["message"].as_str().unwrap_or("no message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_and_what_is_none_is_refused() {
        let read = |text: &str| Message::read(parse(text.as_bytes()).unwrap());
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Ok(Message::Request(_))));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","method":"x"}"#), Ok(Message::Notification { .. })));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#), Ok(Message::Response { .. })));
        for wrong in [
            "[]",
            "1",
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        ] {
            assert_eq!(read(wrong).unwrap_err().code, INVALID_REQUEST, "{wrong}");
        }
        assert_eq!(parse(b"{").unwrap_err().code, PARSE_ERROR);
    }
}
