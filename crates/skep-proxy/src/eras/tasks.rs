//! Tasks of servers whose requests stand alone. Whoever knows the id of a task can see and steer it, so an id is good only
//! for the client that it was given to; for all others there is no such task.
//!
//! That is for clients whom the chain has found out. All others show their server itself who they are, and what they show
//! may change while a task goes on, so that only the server can tell whose it is.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::{Message, Param, json, method};

use super::holder::Holder;
use super::seal::{Broken, States};

/// Where a client says what it wants to hear of, and where it is told what it will.
const HEARD: [&str; 2] = ["params", "notifications"];
/// The tasks among it.
const TASKS: &str = "taskIds";
/// What notifications about tasks begin with.
const NOTIFICATIONS: &str = "notifications/tasks";

/// Whether a request names tasks.
pub(super) fn are_named_in(request: &Message) -> bool {
    request.method().starts_with(method::TASKS)
        || request.method() == method::LISTEN && heard(request.as_str()).is_some_and(|heard| heard.contains_key(TASKS))
}

/// Where a message says which task it is about.
fn named() -> [&'static str; 2] {
    ["params", Param::TaskId.name()]
}

/// What somebody hears of.
fn heard(text: &str) -> Option<Map<String, Value>> {
    let place = json::find(text, &HEARD).ok()??;
    serde_json::from_str(place.of(text)).ok()
}

/// A text with each of the tasks that somebody hears of as `change` gives it, without those of which it gives nothing.
fn each(text: &str, change: impl Fn(&str) -> Option<String>) -> Option<String> {
    // All of it is written anew: who names something twice could mean either.
    let mut heard = heard(text)?;
    let ids = heard.get(TASKS)?.as_array()?.iter().filter_map(|id| change(id.as_str()?).map(Value::String)).collect();
    heard.insert(TASKS.to_owned(), ids);
    json::set(text, &HEARD, &Value::Object(heard).to_string()).ok()
}

impl States {
    /// A request about tasks as its server gets it; nothing when that is as it came.
    pub(super) fn unbound(&self, request: &Message) -> Result<Option<String>, Broken> {
        let text = request.as_str();
        match request.param(Param::TaskId) {
            _ if !self.binds() => Ok(None),
            Some(id) if request.method().starts_with(method::TASKS) => {
                let own = json::decode(id).and_then(|id| self.servers(&id)).ok_or(Broken)?;
                json::set(text, &named(), &json::quote(&own)).map(Some).map_err(|_| Broken)
            }
            // What is not the client's is nothing that it could hear of.
            _ if request.method() == method::LISTEN => Ok(each(text, |id| self.servers(id))),
            _ => Ok(None),
        }
    }

    /// A result that is a task, or about one, as its client gets it; nothing when that is as it came.
    pub(super) fn bound(&self, result: &str) -> Result<Option<String>, Fault> {
        self.bound_at(result, &[Param::TaskId.name()])
    }

    /// The same for what a client is told that listens. Without a key it has named no tasks to hear of.
    pub(super) fn bound_told(&self, name: &str, message: &str) -> Option<String> {
        match name {
            _ if name.starts_with(NOTIFICATIONS) => self.bound_at(message, &named()).ok().flatten(),
            method::ACKNOWLEDGED if self.binds() => each(message, |id| self.clients(id)),
            _ => None,
        }
    }

    fn bound_at(&self, text: &str, path: &[&str]) -> Result<Option<String>, Fault> {
        let Some(place) = json::find(text, path).ok().flatten().filter(|_| self.binds()) else { return Ok(None) };
        let told = "the MCP server has begun a task, and there is no key for its id";
        let impossible = || Fault::new(INTERNAL_ERROR, told);
        let id = json::decode(place.of(text)).and_then(|id| self.clients(&id)).ok_or_else(impossible)?;
        json::set(text, path, &json::quote(&id)).map(Some).map_err(|_| impossible())
    }

    fn binds(&self) -> bool {
        matches!(self.holder, Holder::Known(_))
    }

    /// An id as the client knows it, from one as the server does. It is always the same one.
    pub(super) fn clients(&self, id: &str) -> Option<String> {
        let tag = self.seal.as_ref()?.tag(self.task(id).as_ref());
        Some(format!("{}.{id}", URL_SAFE_NO_PAD.encode(tag)))
    }

    /// The other way round, if the client has it from here.
    pub(super) fn servers(&self, id: &str) -> Option<String> {
        let (tag, id) = id.split_once('.')?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        self.seal.as_ref()?.has_made(self.task(id).as_ref(), &tag).then(|| id.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eras::seal::tests::states;

    fn message(method: &str, params: &str) -> Message {
        Message::read(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#).into()).unwrap()
    }

    #[test]
    fn rule_27_an_id_is_good_for_its_client_alone() {
        let [ann, bob] = ["ann", "bob"].map(|name| states(Holder::Known(name.into())));
        let told = ann.bound(r#"{"resultType":"task","taskId":"t.1","x":1.0}"#).unwrap().unwrap();
        let id = told.split('"').nth(7).unwrap();
        assert!(id.ends_with(".t.1") && told.ends_with(r#","x":1.0}"#), "{told}");
        for name in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let request = message(name, &format!(r#"{{"taskId":"{id}"}}"#));
            let own = ann.opened(&request).unwrap().unwrap();
            assert_eq!(own.param(Param::TaskId), Some(r#""t.1""#), "{name}");
            assert_eq!(bob.opened(&request).unwrap_err(), Broken);
            assert_eq!(ann.opened(&message(name, r#"{"taskId":"t.1"}"#)).unwrap_err(), Broken, "that is the server's");
        }
        let heard = format!(r#"{{"notifications":{{"taskIds":["t.1","{id}",7]}}}}"#);
        let listen = message(method::LISTEN, &heard);
        assert!(ann.opened(&listen).unwrap().unwrap().as_str().contains(r#"{"taskIds":["t.1"]}"#));
        assert!(bob.opened(&listen).unwrap().unwrap().as_str().contains(r#"{"taskIds":[]}"#));
        let twice = message(method::LISTEN, r#"{"notifications":{"taskIds":[],"taskIds":["t.1"]}}"#);
        assert!(ann.opened(&twice).unwrap().unwrap().as_str().contains(r#"{"taskIds":[]}"#));
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t.1"}}"#;
        assert!(ann.bound_told("notifications/tasks", changed).unwrap().contains(id));
        let honoured =
            r#"{"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["t.1"]}}}"#;
        assert!(ann.bound_told(method::ACKNOWLEDGED, honoured).unwrap().contains(id));
        let anybody = states(Holder::Anybody);
        assert_eq!(anybody.bound(r#"{"taskId":"t.1"}"#).unwrap(), None);
        assert!(anybody.opened(&message("tasks/get", r#"{"taskId":"t.1"}"#)).unwrap().is_none());
    }
}
