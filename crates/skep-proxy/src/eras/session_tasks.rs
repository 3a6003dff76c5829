//! Tasks of servers that have sessions (`2025-11-25`). A server may know a task whoever asks for it, in whichever session:
//! with the credentials that clients share it cannot tell them apart. So an id is good for the client that it was given to,
//! as where requests stand alone.
//!
//! Clients have tasks, too, which servers ask for: those are none of our business, and their ids pass as they are.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use skep_mcp::fault::{Fault, INVALID_PARAMS};
use skep_mcp::sse::Event;
use skep_mcp::{Kind, Message, Param, json, method};

use super::begun_tasks::BegunTasks;
use super::seal::States;
use crate::passing::{self, Change};

/// What a message says about the task that it belongs to.
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// What tells that a task has come further.
const STATUS: &str = "notifications/tasks/status";
/// What no message about tasks is without.
const MARK: &[u8] = b"taskId";

/// The tasks of one client at a server.
#[derive(Debug, Clone)]
pub(crate) struct SessionTasks {
    pub(crate) states: States,
    pub(crate) begun: Arc<BegunTasks>,
}

/// Whether a request is about tasks, or wants to be one.
pub(crate) fn are_meant_by(message: &Message) -> bool {
    message.kind() == Kind::Request
        && (message.method().starts_with(method::TASKS) || message.param(Param::Task).is_some())
}

/// Whether the answer to a handshake offers tasks.
pub(crate) fn are_offered_in(answer: &Message) -> bool {
    let offered = answer.result().map(|result| json::find(result, &["capabilities", "tasks"]));
    matches!(offered, Some(Ok(Some(_))))
}

/// What a client is told about a task that is not its own.
fn not_found() -> Fault {
    Fault::new(INVALID_PARAMS, "Task not found")
}

impl SessionTasks {
    /// A message of the client as its server gets it; nothing when that is as it came.
    pub(crate) fn asked(&self, message: &Message) -> Result<Option<Message>, Fault> {
        let is_request = message.kind() == Kind::Request;
        let mut text = if is_request { self.states.unbound(message).map_err(|_| not_found())? } else { None };
        let told = text.as_deref().unwrap_or(message.as_str());
        let path = related(message.kind());
        if let Some(id) = at(told, &path) {
            match self.states.servers(&id) {
                Some(own) => text = Some(json::set(told, &path, &json::quote(&own)).map_err(|_| not_found())?),
                None if is_request => return Err(not_found()),
                // It is about a task of the client's own.
                None => {}
            }
        }
        text.map(|text| Message::read(text.into()).map_err(|_| not_found())).transpose()
    }

    /// A message of the server as its client gets it; nothing when that is as it came.
    pub(crate) fn told(&self, text: &[u8]) -> Option<Bytes> {
        if !text.windows(MARK.len()).any(|part| part == MARK) {
            return None;
        }
        let message = Message::read(Bytes::copy_from_slice(text)).ok()?;
        let mut changed = match message.kind() {
            Kind::Response => self.result(&message),
            Kind::Notification if message.method() == STATUS => {
                self.bound_at(message.as_str(), &["params", Param::TaskId.name()])
            }
            Kind::Request if message.method().starts_with(method::TASKS) => return None,
            Kind::Request | Kind::Notification => None,
        };
        let told = changed.as_deref().unwrap_or(message.as_str());
        changed = self.bound_at(told, &related(message.kind())).or(changed);
        changed.map(Bytes::from)
    }

    /// An answer that is about tasks. What it answers need not be known: no other result looks like that.
    fn result(&self, message: &Message) -> Option<String> {
        let text = message.as_str();
        let created = ["result", "task", Param::TaskId.name()];
        if let Some(id) = at(text, &created) {
            self.begun.note(&self.states.holder, &id);
            return self.bound_at(text, &created);
        }
        if let Some(list) = json::find(text, &["result", "tasks"]).ok().flatten() {
            let list: Vec<Value> = serde_json::from_str(list.of(text)).ok()?;
            let own: Vec<Value> = list.into_iter().filter_map(|task| self.own(task)).collect();
            return json::set(text, &["result", "tasks"], &Value::Array(own).to_string()).ok();
        }
        at(text, &["result", "status"])?;
        self.bound_at(text, &["result", Param::TaskId.name()])
    }

    /// A task of a list, if it is the client's.
    fn own(&self, mut task: Value) -> Option<Value> {
        let id = task.get(Param::TaskId.name())?.as_str()?;
        let is_own = self.begun.has(&self.states.holder, id);
        let id = self.states.clients(id).filter(|_| is_own)?;
        task[Param::TaskId.name()] = Value::String(id);
        Some(task)
    }

    fn bound_at(&self, text: &str, path: &[&str]) -> Option<String> {
        let id = self.states.clients(&at(text, path)?)?;
        json::set(text, path, &json::quote(&id)).ok()
    }
}

/// Where a message says to which task it belongs.
fn related(kind: Kind) -> [&'static str; 4] {
    let place = if kind == Kind::Response { "result" } else { "params" };
    [place, "_meta", RELATED, Param::TaskId.name()]
}

fn at(text: &str, path: &[&str]) -> Option<String> {
    let place = json::find(text, path).ok().flatten()?;
    json::decode(place.of(text)).map(std::borrow::Cow::into_owned)
}

impl Change for SessionTasks {
    async fn event(&mut self, event: Bytes) -> Bytes {
        let read = Event::read(&event);
        let data = read.data.as_deref().filter(|data| read.is_message() && !data.is_empty());
        match data.and_then(|data| self.told(data)) {
            Some(data) => passing::with_data(&event, &data),
            None => event,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eras::holder::Holder;
    use crate::eras::seal::tests::states;

    fn of(name: &str, begun: &Arc<BegunTasks>) -> SessionTasks {
        SessionTasks { states: states(Holder::Known(name.into())), begun: Arc::clone(begun) }
    }

    fn read(value: &Value) -> Message {
        Message::read(value.to_string().into()).unwrap()
    }

    fn told(tasks: &SessionTasks, message: &Value) -> Value {
        let text = message.to_string();
        tasks.told(text.as_bytes()).map_or(message.clone(), |told| serde_json::from_slice(&told).unwrap())
    }

    fn result(result: &Value) -> Value {
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "result": result})
    }

    #[test]
    fn rule_27_ids_are_bound_wherever_a_server_says_them_and_nowhere_else() {
        use serde_json::json;
        let begun = Arc::default();
        let (ann, bob) = (of("ann", &begun), of("bob", &begun));
        let created = told(&ann, &result(&json!({"task": {"taskId": "t", "status": "working"}, "x": 1.5})));
        let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
        assert_eq!((id.split_once('.').unwrap().1, &created["result"]["x"]), ("t", &json!(1.5)));
        let known = told(&ann, &result(&json!({"taskId": "t", "status": "working"})));
        assert_eq!(known["result"]["taskId"], json!(id), "it is the same one each time");
        let listed = result(&json!({"tasks": [{"taskId": "t"}, {"taskId": "other"}, {}], "nextCursor": "2"}));
        let own = json!({"tasks": [{"taskId": id}], "nextCursor": "2"});
        assert_eq!((&told(&ann, &listed)["result"], told(&bob, &listed)["result"]["tasks"] == json!([])), (&own, true));
        let status = json!({"jsonrpc": "2.0", "method": STATUS, "params": {"taskId": "t"}});
        assert_eq!(told(&ann, &status)["params"]["taskId"], json!(id));
        let related = |id: &str| json!({"_meta": {RELATED: {"taskId": id}}});
        let asked = json!({"jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": related("t")});
        assert_eq!(told(&ann, &asked)["params"], related(&id));
        assert_eq!(told(&ann, &result(&related("t")))["result"], related(&id));
        // These are about tasks of the client, or about none.
        let of_client = json!({"jsonrpc": "2.0", "id": 3, "method": "tasks/get", "params": {"taskId": "mine"}});
        let other = result(&json!({"taskId": 7, "structuredContent": {"taskId": "t"}}));
        for message in [of_client, other] {
            assert_eq!(told(&ann, &message), message);
        }
    }

    #[test]
    fn rule_27_what_a_client_asks_is_asked_for_its_own_tasks() {
        use serde_json::json;
        let begun = Arc::default();
        let (ann, bob) = (of("ann", &begun), of("bob", &begun));
        let id = ann.states.clients("t").unwrap();
        let ask =
            |name: &str, params: &Value| read(&json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}));
        for name in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let request = ask(name, &json!({"taskId": id}));
            assert_eq!(ann.asked(&request).unwrap().unwrap().param(Param::TaskId), Some(r#""t""#));
            assert!(bob.asked(&request).is_err() && ann.asked(&ask(name, &json!({"taskId": "t"}))).is_err(), "{name}");
        }
        let related = |id: &str| json!({"_meta": {RELATED: {"taskId": id}}});
        let call = ask("tools/call", &related(&id));
        assert!(ann.asked(&call).unwrap().unwrap().as_str().contains(r#""taskId":"t""#));
        assert!(bob.asked(&call).is_err());
        let answer = read(&result(&related(&id)));
        assert!(ann.asked(&answer).unwrap().unwrap().as_str().contains(r#""taskId":"t""#));
        for of_client in [result(&related("mine")), result(&json!({"task": {"taskId": "mine"}}))] {
            assert!(ann.asked(&read(&of_client)).unwrap().is_none());
        }
        assert!(ann.asked(&ask("tasks/list", &json!({}))).unwrap().is_none());
    }
}
