//! Somebody who calls, in one revision and by one transport, and what is wrong with how that was decided.

use serde_json::{Value, json};

use super::way::{Speech, Way};
use crate::http::{Request, Response, initialize, modern, request};

pub(super) const MODERN: &str = "2026-07-28";

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum May {
    Everybody,
    Keepers,
    Nobody,
}

/// A method, what it is given, and who may.
pub(super) type Row = (&'static str, &'static str, May);

/// How something is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    Request,
    /// Without wanting an answer.
    Notification,
    /// Behind something that everybody may.
    Batch,
    /// The same, without wanting an answer.
    QuietBatch,
}

/// What must become of something that is allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Then {
    /// It is answered, or taken, and reaches the server where that passes on everything or nobody else can answer.
    Answered,
    /// Anything but a refusal: it may be of another revision.
    Decided,
}

/// What nobody but the server can answer, whatever it speaks.
const OF_THE_SERVER: [&str; 8] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "completion/complete",
];

/// What lists must not show to keepers, and what they must not show to others besides.
const HIDDEN: [&str; 3] = ["burn", "curse", "hive://2"];
const OF_KEEPERS: [&str; 4] = ["weigh", "look", "greet", "hive://1"];

/// Where messages go, and where answers come from if that is somewhere else.
enum Line {
    Alone,
    Session(Option<String>),
    Older(Box<Response>, String),
}

/// Somebody who calls.
pub(super) struct Caller<'a> {
    way: &'a Way,
    revision: &'static str,
    groups: &'a str,
    token: &'a str,
    line: Line,
    /// What was refused, and everything that has reached the server.
    refused: Vec<(&'static str, Value)>,
    arrived: Vec<Value>,
}

/// What came of something.
struct Outcome {
    status: u16,
    text: String,
}

impl<'a> Caller<'a> {
    pub(super) async fn begin(way: &'a Way, revision: &'static str, (groups, token): (&'a str, &'a str)) -> Self {
        let mut caller =
            Self { way, revision, groups, token, line: Line::Alone, refused: Vec::new(), arrived: Vec::new() };
        if way.speech == Speech::Older {
            let open = Request::new("GET", "/sse").header("Accept", "text/event-stream");
            let mut stream = caller.send(open).await;
            let event = stream.event().await.unwrap_or_else(|| panic!("{}: {}", way.name, stream.status));
            let place = event.split_once("data: ").unwrap().1.trim_end();
            let path = place.strip_prefix(&format!("http://{}", way.address)).unwrap_or(place).to_owned();
            caller.line = Line::Older(Box::new(stream), path);
        } else if revision != MODERN {
            caller.line = Line::Session(None);
        }
        if revision != MODERN {
            let mut begun = caller.send(caller.say(&initialize(revision))).await;
            // Whoever answers it, everybody may say it.
            let row = format!("{} {revision} initialize by {groups}", way.name);
            assert_eq!(begun.status, if way.speech == Speech::Older { 202 } else { 200 }, "{row}");
            match &mut caller.line {
                Line::Session(session) => *session = begun.header("mcp-session-id").map(str::to_owned),
                Line::Older(stream, _) => assert!(stream.message().await.unwrap()["result"].is_object(), "{row}"),
                Line::Alone => {}
            }
            begun.skip().await;
            way.seen();
        }
        caller
    }

    async fn send(&self, request: Request) -> Response {
        request.header("Authorization", &format!("Bearer {}", self.token)).send(&self.way.address).await
    }

    /// A request that somebody has made up, where this one's messages go.
    pub(super) fn own(&self, request: Request) -> Request {
        match &self.line {
            Line::Alone | Line::Session(None) => request,
            Line::Session(Some(session)) => request.instead("Mcp-Session-Id", session),
            Line::Older(_, path) => request.at(path),
        }
    }

    fn ask(&self, method: &str, params: &Value) -> Request {
        if let Line::Alone = self.line {
            let asked = modern(7, method, params.clone());
            // Whoever listens has to take events.
            let asked = if method == "subscriptions/listen" { asked } else { asked.plain() };
            // What the header repeats is not always the name.
            return match params["uri"].as_str().or(params["taskId"].as_str()) {
                Some(subject) => asked.instead("Mcp-Name", subject),
                None => asked,
            };
        }
        self.say(&request(7, method, params))
    }

    /// A message, or several, by whichever way this one has.
    fn say(&self, message: &Value) -> Request {
        let post = Request::post(message);
        let post = if self.way.speech == Speech::Events { post } else { post.plain() };
        match &self.line {
            Line::Alone => post.header("MCP-Protocol-Version", MODERN),
            Line::Session(None) => post,
            Line::Session(Some(session)) => post.header("MCP-Protocol-Version", self.revision).in_session(session),
            Line::Older(_, path) => {
                let post = Request::new("POST", path).header("Content-Type", "application/json");
                post.body(message.to_string())
            }
        }
    }

    fn said(&self, (method, params, _): Row, form: Form) -> Request {
        let params: Value = serde_json::from_str(params).unwrap();
        let quiet = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let first = request(1, "tools/list", &json!({}));
        match form {
            Form::Request => self.ask(method, &params),
            Form::Notification => self.say(&quiet),
            Form::Batch => self.say(&json!([first, request(7, method, &params)])),
            Form::QuietBatch => self.say(&json!([first, quiet])),
        }
    }

    /// Says something, and hears what is answered to it.
    async fn hear(&mut self, request: Request, is_answered: bool) -> Outcome {
        let mut answer = self.send(request).await;
        let status = answer.status;
        let text = match &mut self.line {
            Line::Older(stream, _) if status == 202 && is_answered => loop {
                let message = stream.message().await.unwrap();
                if message["id"] == 7 && message.get("method").is_none() {
                    break message.to_string();
                }
            },
            _ if status == 200 && answer.header("content-type") == Some("text/event-stream") => {
                answer.message().await.map(|message| message.to_string()).unwrap_or_default()
            }
            _ => answer.text().await,
        };
        Outcome { status, text }
    }

    /// What is wrong with how something was decided.
    pub(super) async fn check(&mut self, row: Row, form: Form, then: Then) -> Option<String> {
        let (method, params, may) = row;
        let name = format!("{} {} {form:?} {method} {params} by {}", self.way.name, self.revision, self.groups);
        let request = self.said(row, form);
        let Outcome { status, text } = self.hear(request, form == Form::Request).await;
        let before = self.arrived.len();
        self.arrived.extend(self.way.seen());
        let has_arrived = self.arrived[before..].iter().any(|seen| says(seen, method));
        let refusal = |id: &str| format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":403,"message":"Unauthorized"}}}}"#);
        let is_quiet = matches!(form, Form::Notification | Form::QuietBatch);
        let is_refused = status == 403 && text == refusal(if is_quiet { "" } else { r#""id":7,"# });
        let is_allowed = may == May::Everybody || (may == May::Keepers && self.groups == "keepers");
        let wrong = if !is_allowed {
            self.refused.push((method, serde_json::from_str(params).unwrap()));
            !is_refused || has_arrived
        } else if then == Then::Decided {
            status == 403
        } else {
            let good = if form == Form::Notification || self.way.speech == Speech::Older { 202 } else { 200 };
            let of_server = form == Form::Request && OF_THE_SERVER.contains(&method);
            let must_arrive = of_server || (self.way.passes_everything && !(is_quiet && self.revision == MODERN));
            status != good || (must_arrive && !has_arrived) || (of_server && !text.contains(r#""result""#))
        };
        let shown = method.ends_with("/list") && self.shows_too_much(&text);
        (wrong || shown).then(|| format!("{name}: {status} {text}, {}", if has_arrived { "seen" } else { "unseen" }))
    }

    fn shows_too_much(&self, list: &str) -> bool {
        let others: &[&str] = if self.groups == "keepers" { &[] } else { &OF_KEEPERS };
        HIDDEN.iter().chain(others).any(|name| list.contains(name))
    }

    /// Asks for something that everybody may, and hears it. What has not reached the server by then never will.
    pub(super) async fn settle(&mut self) {
        let last = self.ask("tools/list", &json!({}));
        self.hear(last, true).await;
    }

    /// What has reached the server after all, once everything before a last request has.
    pub(super) async fn end(mut self) -> Vec<String> {
        self.settle().await;
        self.arrived.extend(self.way.seen());
        let (arrived, way) = (&self.arrived, self.way.name);
        let is_there = |(method, params): &(&str, Value)| {
            let is_same = |seen: &Value| seen["method"] == *method && about(&seen["params"]) == about(params);
            arrived.iter().flat_map(singles).any(is_same)
        };
        let wrong = self.refused.iter().filter(|refused| is_there(refused));
        wrong.map(|(method, params)| format!("{way} {} {method} {params} has arrived", self.revision)).collect()
    }
}

/// The messages in what a server got.
fn singles(seen: &Value) -> Vec<&Value> {
    seen.as_array().map_or_else(|| vec![seen], |batch| batch.iter().collect())
}

fn says(seen: &Value, method: &str) -> bool {
    singles(seen).iter().any(|message| message["method"] == method)
}

/// What a message is about.
fn about(params: &Value) -> Vec<&Value> {
    ["name", "uri", "taskId", "notifications"].iter().map(|member| &params[*member]).collect()
}
