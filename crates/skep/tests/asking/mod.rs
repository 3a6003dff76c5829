//! A client that a server asks something during its call.

use serde_json::{Value, json};

use crate::http::{Request, Response};

const REVISION: &str = "2025-06-18";

fn tell(address: &str, session: &str, message: &Value) -> Response {
    let post = Request::post(message).header("Mcp-Session-Id", session);
    post.header("MCP-Protocol-Version", REVISION).send(address)
}

/// A session of a client that can be asked; nothing when it has to come back later.
pub(crate) fn begin(address: &str) -> Option<String> {
    let params = json!({"protocolVersion": REVISION, "capabilities": {"sampling": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let mut response = Request::post(&hello).send(address);
    if response.status == 503 {
        return None;
    }
    let status = response.status;
    assert_eq!(status, 200, "{}", response.text());
    Some(response.header("mcp-session-id").unwrap().to_owned())
}

/// A call under way, which the server cannot finish without an answer of the client.
pub(crate) struct Call<'a> {
    address: &'a str,
    session: &'a str,
    stream: Response,
}

impl<'a> Call<'a> {
    pub(crate) fn begin(address: &'a str, session: &'a str) -> Self {
        let params = json!({"name": "sampling", "arguments": {"prompt": "?"}});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        Self { address, session, stream: tell(address, session, &call) }
    }

    /// Answers the question of the server with a text of this client's own, and makes sure that the server has got it.
    pub(crate) fn finish(mut self) {
        let question = self.stream.message().unwrap();
        assert_eq!(question["method"], "sampling/createMessage", "{question}");
        let content = json!({"type": "text", "text": self.session});
        let result = json!({"role": "assistant", "content": content, "model": "test"});
        let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        assert_eq!(tell(self.address, self.session, &reply).status, 202);
        let answer = self.stream.message().unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], self.session, "{answer}");
    }
}
