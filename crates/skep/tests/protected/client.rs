//! A client of a protected server, by either transport.

use std::cell::RefCell;

use serde_json::{Value, json};

use super::signed_with;
use crate::http::{Request, Response};

const REVISION: &str = "2025-06-18";

/// A client of a protected server.
pub(crate) struct Client<'a> {
    address: &'a str,
    token: Option<&'a str>,
    way: Way,
}

/// How somebody becomes a client of a server at an address, with a token or without.
pub(crate) type Begin = for<'a> fn(&'a str, Option<&'a str>) -> Option<Client<'a>>;

/// How it talks.
enum Way {
    /// By streamable HTTP, in this session.
    Session(String),
    /// By HTTP+SSE: it sends to the address that its stream has announced, and the answers come on the stream.
    Events { stream: RefCell<Response>, target: String },
}

/// Those that begin are [`Begin`], so that the lifetime is theirs.
impl Client<'_> {
    /// Says the first word; there is a session when it was heard.
    pub(crate) fn begin(address: &str) -> Option<Client<'_>> {
        Self::begin_as(address, None)
    }

    /// The same for somebody who has a token.
    pub(crate) fn begin_as<'a>(address: &'a str, token: Option<&'a str>) -> Option<Client<'a>> {
        let response = first_word(token).send(address);
        let session = response.header("mcp-session-id").filter(|_| response.status == 200)?.to_owned();
        Some(Client { address, token, way: Way::Session(session) })
    }

    /// The same for a client that knows nothing newer than a stream of events.
    pub(crate) fn listen_as<'a>(address: &'a str, token: Option<&'a str>) -> Option<Client<'a>> {
        let mut stream = listening(token).send(address);
        let target = if stream.status == 200 { stream.event()?.data? } else { return None };
        let client = Client { address, token, way: Way::Events { stream: RefCell::new(stream), target } };
        let (status, answer) = client.ask("initialize", &hello());
        (status == 200 && answer["result"].is_object()).then_some(client)
    }
}

impl<'a> Client<'a> {
    /// The same client with the token of somebody else.
    pub(crate) fn stolen_by(self, token: &'a str) -> Self {
        Self { token: Some(token), ..self }
    }

    /// The answer to a request as it comes. One that comes on a stream is not waited for.
    pub(crate) fn send(&self, method: &str, params: &Value) -> Response {
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let request = match &self.way {
            Way::Session(session) => {
                Request::post(&message).header("MCP-Protocol-Version", REVISION).header("Mcp-Session-Id", session)
            }
            Way::Events { target, .. } => {
                Request::new("POST", target).header("Content-Type", "application/json").body(&message.to_string())
            }
        };
        bearing(request, self.token).send(self.address)
    }

    /// The status and the answer. One that comes on a stream has the status of all that went well.
    fn ask(&self, method: &str, params: &Value) -> (u16, Value) {
        let mut response = self.send(method, params);
        let status = response.status;
        match &self.way {
            Way::Events { stream, .. } if status == 202 => (200, stream.borrow_mut().message().unwrap()),
            _ if response.is_stream() => (status, response.message().unwrap()),
            _ => (status, response.json()),
        }
    }

    /// The tools that are shown, as they are.
    pub(crate) fn listed(&self) -> Vec<Value> {
        let (status, listed) = self.ask("tools/list", &json!({}));
        assert_eq!(status, 200, "{listed}");
        listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools: {listed}")).clone()
    }

    /// The names of the tools that are shown, in their order in the alphabet.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.listed();
        let mut names: Vec<String> = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> (u16, Value) {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Whether callbacks know the proxy by this key.
    pub(crate) fn is_signed_with(&self, key: &str) -> Result<(), String> {
        let (status, echo) = self.call("echo", &json!({"message": "as it was"}));
        let is_known = status == 200 && echo["result"]["content"][0]["text"] == signed_with(key);
        if is_known { Ok(()) } else { Err(format!("{status}: {echo}")) }
    }

    /// Policies show and allow two tools; one callback changes what is echoed, and another one refuses a sum.
    pub(crate) fn check(&self, key: &str) {
        assert_eq!(self.tools(), ["add", "echo"]);
        let (status, sum) = self.call("add", &json!({"a": 2, "b": 3}));
        assert_eq!((status, &sum["result"]["structuredContent"]["sum"]), (200, &json!(5)), "{sum}");
        assert_eq!(self.is_signed_with(key), Ok(()));
        for (tool, arguments, told) in [
            ("sampling", json!({"prompt": "?"}), "Unauthorized"),
            ("add", json!({"a": 13, "b": 3}), "Request denied by policy"),
        ] {
            let (status, refused) = self.call(tool, &arguments);
            let error = json!({"code": 403, "message": told});
            assert_eq!((status, &refused["error"], &refused["id"]), (403, &error, &json!(2)), "{tool}: {refused}");
        }
    }
}

/// What a client says about itself.
fn hello() -> Value {
    let client = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client})
}

/// The first word of a client.
pub(crate) fn first_word(token: Option<&str>) -> Request {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello()});
    bearing(Request::post(&message), token)
}

/// Opens the stream of a client that knows nothing newer.
pub(crate) fn listening(token: Option<&str>) -> Request {
    bearing(Request::new("GET", "/sse").header("Accept", "text/event-stream"), token)
}

fn bearing(request: Request, token: Option<&str>) -> Request {
    token.into_iter().fold(request, |request, token| request.header("Authorization", &format!("Bearer {token}")))
}
