//! `subscriptions/listen`: changes, told on the stream of the request that asked for them.

use serde_json::{Value, json};

use super::call::Call;
use super::changes::Change;
use super::era::SUBSCRIPTION_KEY;
use super::message::{self, Fault, Members, Request};
use super::{limits, resources};

/// What a listener wants to know, as far as it can be told.
#[derive(Debug)]
struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    /// Those whose content is watched.
    watched: Vec<String>,
}

impl Filter {
    fn read(call: &Call, params: &Members) -> Result<Self, Fault> {
        let Some(wanted) = params.get("notifications").and_then(Value::as_object) else {
            return Err(Fault::invalid_params("notifications is missing"));
        };
        let flag = |name: &str| wanted.get(name).and_then(Value::as_bool).unwrap_or_default();
        let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
        let watched = uris
            .filter_map(Value::as_str)
            .filter(|uri| resources::content(call, uri).is_some())
            .take(limits::WATCHED_RESOURCES)
            .map(str::to_owned)
            .collect();
        Ok(Self {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            watched,
        })
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.watched.contains(uri),
        }
    }

    fn honoured(&self) -> Value {
        let mut honoured = json!({});
        let flags = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            honoured[name] = json!(true);
        }
        if !self.watched.is_empty() {
            honoured["resourceSubscriptions"] = json!(self.watched);
        }
        honoured
    }
}

/// Tells of changes until the client goes away or the server stops.
pub(crate) async fn listen(call: &Call, request: &Request) -> Result<Value, Fault> {
    let filter = Filter::read(call, &request.params)?;
    // From before the acknowledgement on, so that nothing falls between the two.
    let mut changes = call.demo.changes.listen();
    let tag = json!({SUBSCRIPTION_KEY: request.id});
    let acknowledged = json!({"notifications": filter.honoured(), "_meta": tag});
    call.outbox.send(message::notification("notifications/subscriptions/acknowledged", &acknowledged)).await;
    loop {
        let change = tokio::select! {
            change = changes.next() => change,
            () = call.demo.stop.cancelled() => None,
        };
        match change {
            None => return Ok(json!({"_meta": tag})),
            Some(change) if filter.wants(&change) => {
                call.outbox.send(change.notification(Some(tag.clone()))).await;
            }
            Some(_) => {}
        }
    }
}
