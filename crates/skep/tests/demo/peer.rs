//! A client of one revision on one transport, with the words that these have and no others.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::http::{Request, Response};
use crate::process::{Server, command, terminate};

pub(crate) const STATELESS: &str = "2026-07-28";

/// The client.
pub(crate) struct Peer {
    /// The revision that it speaks.
    pub(crate) revision: &'static str,
    /// The revision that the server speaks behind a proxy. Without one it is the same.
    pub(crate) server: &'static str,
    wire: Wire,
    next: u64,
    /// Messages that came when something else was waited for.
    seen: Vec<Value>,
    /// The `_meta` of requests.
    pub(crate) meta: Value,
}

enum Wire {
    Stdio { child: Child, input: ChildStdin, output: BufReader<ChildStdout> },
    Sse { address: String, server: Option<Server>, endpoint: String, stream: Response },
    Streamable { address: String, server: Option<Server>, session: Option<String>, background: Option<Response> },
}

impl Wire {
    fn sse(address: &str, path: &str, server: Option<Server>) -> Self {
        let mut stream = Request::new("GET", path).header("Accept", "text/event-stream").send(address);
        let event = stream.event().unwrap();
        assert_eq!(event.name, "endpoint");
        let endpoint = event.data.unwrap();
        let endpoint = endpoint.strip_prefix(&format!("http://{address}")).unwrap_or(&endpoint).to_owned();
        Self::Sse { address: address.to_owned(), server, endpoint, stream }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Self::Stdio { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Peer {
    /// Connects, and makes the handshake where there is one.
    pub(crate) fn connect(transport: &str, revision: &'static str) -> Self {
        let wire = match transport {
            "stdio" => {
                let mut child = command(transport).spawn().unwrap();
                let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
                Wire::Stdio { child, input, output: BufReader::new(output) }
            }
            "sse" => {
                let server = Server::start(transport);
                Wire::sse(&server.address.clone(), "/sse", Some(server))
            }
            _ => {
                let server = Server::start(transport);
                let address = server.address.clone();
                Wire::Streamable { address, server: Some(server), session: None, background: None }
            }
        };
        Self::open(wire, revision, revision)
    }

    /// Connects to a proxy whose server speaks a single revision.
    pub(crate) fn through(address: &str, revision: &'static str, server: &'static str) -> Self {
        let address = address.to_owned();
        Self::open(Wire::Streamable { address, server: None, session: None, background: None }, revision, server)
    }

    /// The same over HTTP+SSE, whose stream is at this path.
    pub(crate) fn through_sse(address: &str, path: &str, revision: &'static str, server: &'static str) -> Self {
        Self::open(Wire::sse(address, path, None), revision, server)
    }

    fn open(wire: Wire, revision: &'static str, server: &'static str) -> Self {
        let mut peer = Self { revision, server, wire, next: 1, seen: Vec::new(), meta: json!({}) };
        let mut capabilities = json!({"sampling": {}, "roots": {}});
        if revision >= "2025-06-18" {
            capabilities["elicitation"] = json!({});
        }
        if revision == STATELESS {
            peer.meta = json!({
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            });
        } else {
            let client = json!({"name": "test", "version": "1"});
            let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client});
            let result = peer.result("initialize", &params);
            // It knows no other one.
            assert_eq!(result["protocolVersion"], revision, "a server of {server}");
            peer.notify("notifications/initialized", &json!({}));
        }
        peer
    }

    /// The older one of the two revisions, which says what both sides can do.
    pub(crate) fn oldest(&self) -> &'static str {
        self.revision.min(self.server)
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.revision == STATELESS
    }

    /// The result of a request, asked again with answers for as long as the server asks for some.
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        loop {
            let answer = self.ask(method, &params).pop().unwrap();
            let result = answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone();
            if !self.is_stateless() {
                return result;
            }
            if result["resultType"] == "complete" {
                assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].is_string(), "{result}");
                return result;
            }
            assert_eq!(result["resultType"], "input_required");
            let questions = result["inputRequests"].as_object().unwrap();
            let answers = questions.iter().map(|(key, question)| (key.clone(), reply(&question["method"])));
            params["inputResponses"] = Value::Object(answers.collect());
            if let Some(state) = result.get("requestState") {
                params["requestState"] = state.clone();
            }
        }
    }

    /// The code of the error that a request is answered with.
    pub(crate) fn error(&mut self, method: &str, params: &Value) -> i64 {
        let answer = self.ask(method, params).pop().unwrap();
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"))
    }

    /// All that the server says until the answer, and the answer. Questions of the server are answered.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Vec<Value> {
        let request = self.request(method, params);
        let mut response = self.write(&request);
        let mut messages = Vec::new();
        loop {
            let message = self.read(response.as_mut());
            if message["id"] == request["id"] && message.get("method").is_none() {
                messages.push(message);
                return messages;
            }
            // What has no method is the answer to a request that was called off.
            if message.get("id").is_some() && message.get("method").is_some() {
                assert!(!self.is_stateless(), "the server may not ask: {message}");
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": reply(&message["method"])});
                assert!(self.write(&reply).is_none_or(|response| response.status == 202));
            }
            self.seen.push(message.clone());
            messages.push(message);
        }
    }

    /// Begins a request whose answer is not waited for, and gives its id and its stream if it has one.
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> (Value, Option<Response>) {
        let request = self.request(method, params);
        (request["id"].clone(), self.write(&request))
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        let response = self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
        assert!(response.is_none_or(|response| response.status == 202));
    }

    /// Sends whatever it is, and gives the first thing that comes back.
    pub(crate) fn raw(&mut self, message: &Value) -> Value {
        let mut response = self.write(message);
        self.read(response.as_mut())
    }

    /// Listens for what belongs to no request, where that needs a stream of its own.
    pub(crate) fn listen(&mut self) {
        let revision = self.revision;
        if let Wire::Streamable { address, session: Some(session), background, .. } = &mut self.wire {
            background.get_or_insert_with(|| {
                let get = Request::new("GET", "/mcp").header("Accept", "text/event-stream");
                within_session(get, session, revision).send(address)
            });
        }
    }

    /// Waits for a notification that belongs to no request.
    pub(crate) fn wait_for(&mut self, method: &str) -> Value {
        self.listen();
        if let Wire::Streamable { background: Some(stream), .. } = &mut self.wire {
            return loop {
                let message = stream.message().unwrap();
                if message["method"] == method {
                    break message;
                }
            };
        }
        while !self.seen.iter().any(|message| message["method"] == method) {
            let message = self.read(None);
            self.seen.push(message);
        }
        let index = self.seen.iter().position(|message| message["method"] == method).unwrap();
        self.seen.remove(index)
    }

    /// Ends the client's side, and tells whether the server ended well.
    pub(crate) fn close(mut self) -> bool {
        match &mut self.wire {
            Wire::Stdio { child, .. } => {
                terminate(child);
                child.wait().unwrap().success()
            }
            Wire::Sse { server: Some(server), .. } | Wire::Streamable { server: Some(server), .. } => {
                server.stop();
                true
            }
            Wire::Sse { server: None, .. } | Wire::Streamable { server: None, .. } => true,
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        for (key, value) in self.meta.as_object().unwrap() {
            params["_meta"][key] = value.clone();
        }
        self.next += 1;
        json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
    }

    fn write(&mut self, message: &Value) -> Option<Response> {
        let is_stateless = self.is_stateless();
        match &mut self.wire {
            Wire::Stdio { input, .. } => {
                writeln!(input, "{message}").unwrap();
                None
            }
            Wire::Sse { address, endpoint, .. } => {
                let post = Request::new("POST", endpoint).header("Content-Type", "application/json");
                let response = post.body(&message.to_string()).send(address);
                assert!(matches!(response.status, 202 | 400), "{}", response.status);
                (response.status == 400).then_some(response)
            }
            Wire::Streamable { address, session, .. } => {
                let mut post = Request::post(message);
                if is_stateless {
                    post = stateless_headers(post, message, STATELESS);
                } else if let Some(session) = session {
                    post = within_session(post, session, self.revision);
                }
                let response = post.send(address);
                if let Some(id) = response.header("mcp-session-id") {
                    *session = Some(id.to_owned());
                }
                Some(response)
            }
        }
    }

    fn read(&mut self, response: Option<&mut Response>) -> Value {
        match (response, &mut self.wire) {
            (Some(response), _) if response.is_stream() => response.message().unwrap(),
            (Some(response), _) => response.json(),
            (None, Wire::Stdio { output, .. }) => {
                let mut line = String::new();
                output.read_line(&mut line).unwrap();
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
            }
            (None, Wire::Sse { stream, .. }) => stream.message().unwrap(),
            (None, Wire::Streamable { .. }) => panic!("there is no stream to read"),
        }
    }
}

/// Adds the headers that a request of a session must have. There are servers that know one revision, and take a request
/// that names none for one of `2025-03-26`.
fn within_session(request: Request, session: &str, revision: &str) -> Request {
    let request = request.header("Mcp-Session-Id", session);
    if revision < "2025-06-18" { request } else { request.header("MCP-Protocol-Version", revision) }
}

/// Adds the headers that a request which stands alone must have.
pub(crate) fn stateless_headers(post: Request, message: &Value, version: &str) -> Request {
    let post = post.header("MCP-Protocol-Version", version);
    let Some(method) = message["method"].as_str() else { return post };
    let post = post.header("Mcp-Method", method);
    let name = match method {
        "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
        "resources/read" => message["params"]["uri"].as_str(),
        _ => None,
    };
    match name {
        Some(name) => post.header("Mcp-Name", name),
        None => post,
    }
}

/// What the client answers to a question of the server.
fn reply(method: &Value) -> Value {
    match method.as_str().unwrap() {
        "sampling/createMessage" => {
            json!({"role": "assistant", "content": {"type": "text", "text": "bees"}, "model": "test", "stopReason": "endTurn"})
        }
        "elicitation/create" => {
            json!({"action": "accept", "content": {"name": "Ada", "color": "yellow", "context": "hives", "ok": true}})
        }
        "roots/list" => json!({"roots": [{"uri": "file:///hive", "name": "hive"}]}),
        other => panic!("{other} cannot be asked"),
    }
}
