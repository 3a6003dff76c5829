//! A client that listens for changes by a request, before a server that tells them to sessions.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use serde_json::{Map, Value, json};
use skep_mcp::era::Era;
use skep_mcp::fault::{Fault, INVALID_PARAMS, METHOD_NOT_FOUND};
use skep_mcp::{Kind, Message, MetaKey, Param, json, method};

use super::changes;
use super::line::{self, Replies, Seat, Sharing};
use super::modern_client::{ModernClient, Running, id};
use crate::answer::{self, Answer};
use crate::intake::Accepts;
use crate::pauses::Pauses;
use crate::reply::Reply;
use crate::stdio::events::{End, EventStream};

/// Resources that one listener may watch.
pub(crate) const MOST_RESOURCES: usize = 256;
/// What a listener may want, by the capability that promises it and the notification that tells it.
const LISTS: [(&str, &str, &str); 3] = [
    ("toolsListChanged", "tools", "notifications/tools/list_changed"),
    ("promptsListChanged", "prompts", "notifications/prompts/list_changed"),
    ("resourcesListChanged", "resources", "notifications/resources/list_changed"),
];

/// What a listener is told.
#[derive(Debug, Default)]
struct Filter {
    lists: Vec<(&'static str, &'static str)>,
    resources: HashSet<String>,
}

impl Filter {
    /// As much of what a client wants as the server tells its sessions.
    async fn agree(wanted: &Map<String, Value>, seat: &Seat) -> Self {
        let promised: Value = serde_json::from_str(&seat.agreed).unwrap_or_default();
        let promised = |capability: &str, what: &str| promised["capabilities"][capability][what] == true;
        let lists = LISTS.iter().filter(|(name, capability, _)| {
            wanted.get(*name).and_then(Value::as_bool) == Some(true) && promised(capability, "listChanged")
        });
        let mut filter =
            Self { lists: lists.map(|(name, _, told)| (*name, *told)).collect(), resources: HashSet::new() };
        let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
        for uri in uris.filter_map(Value::as_str).filter(|_| promised("resources", "subscribe")).take(MOST_RESOURCES) {
            let Ok(mut replies) = seat.line.ask(&line::request(method::SUBSCRIBE, &json!({"uri": uri}))).await else {
                continue;
            };
            while let Some(message) = replies.next().await {
                if message.result().is_some() {
                    filter.resources.insert(uri.to_owned());
                }
            }
        }
        filter
    }

    fn honoured(&self) -> Value {
        let mut honoured: Map<String, Value> =
            self.lists.iter().map(|(name, _)| ((*name).to_owned(), json!(true))).collect();
        if !self.resources.is_empty() {
            honoured.insert("resourceSubscriptions".to_owned(), json!(self.resources));
        }
        honoured.into()
    }

    fn wants(&self, message: &Message) -> bool {
        match message.method() {
            method::RESOURCE_UPDATED => {
                message.param_text(Param::Uri).is_some_and(|uri| self.resources.contains(&*uri))
            }
            name => self.lists.iter().any(|(_, told)| *told == name),
        }
    }
}

/// Answers a request to listen with a stream that stays open.
pub(super) async fn serve(client: &ModernClient, accepts: Accepts, request: &Message) -> Result<Answer, Answer> {
    let text = request.as_str();
    let wanted = json::find(text, &["params", "notifications"]).ok().flatten();
    let wanted = wanted.and_then(|place| serde_json::from_str::<Map<String, Value>>(place.of(text)).ok());
    let Some(wanted) = wanted else {
        let fault = Fault::new(INVALID_PARAMS, "notifications must be an object");
        return Err(answer::fault(http::StatusCode::OK, &fault, request.owned_id().as_ref()));
    };
    // Its subscriptions are of no use to the next one.
    let seat = client.seat("{}", Sharing::OnlyOnce, request).await?;
    let stream = EventStream::new(0, false);
    let listener = Listener { client: client.clone(), wanted, request: request.clone(), stream: Arc::clone(&stream) };
    let running = Running(tokio::spawn(listener.tell(seat)));
    Ok(Reply { accepts, era: Era::Modern, client: None }.give(&stream, running, drop).await)
}

/// Says on everything that a listener is told whom it is for.
fn tag(request: &Message) -> String {
    format!("{{{}:{}}}", json::quote(MetaKey::SubscriptionId.name()), id(request))
}

/// A notification under the name of a listener.
fn tagged(message: &str, request: &Message) -> Option<Bytes> {
    let path = ["params", "_meta", MetaKey::SubscriptionId.name()];
    json::set(message, &path, id(request)).ok().map(Bytes::from)
}

/// One notification of each kind that a listener was promised, under its name.
pub(crate) fn everything(honoured: &Value, request: &Message) -> Vec<Bytes> {
    let all = changes::everything(honoured);
    all.iter().filter_map(|message| tagged(std::str::from_utf8(message).ok()?, request)).collect()
}

/// The answer to a request to listen, with which its stream ends.
pub(crate) fn result(request: &Message) -> Bytes {
    line::result(id(request), &format!(r#"{{"resultType":"complete","_meta":{}}}"#, tag(request)))
}

/// Somebody who listens, and what it wants to hear.
struct Listener {
    client: ModernClient,
    wanted: Map<String, Value>,
    request: Message,
    stream: Arc<EventStream>,
}

/// A session whose stream is listened to.
struct Heard {
    seat: Seat,
    overheard: Replies,
    filter: Filter,
}

impl Listener {
    /// Tells what changes until there is nobody who would know.
    async fn tell(self, seat: Seat) {
        // From before the acknowledgement on, so that nothing falls between the two.
        let heard = self.hear(seat).await;
        let acknowledged = format!(
            r#"{{"jsonrpc":"2.0","method":"{}","params":{{"notifications":{},"_meta":{}}}}}"#,
            method::ACKNOWLEDGED,
            heard.as_ref().map_or_else(|| json!({}), |heard| heard.filter.honoured()),
            tag(&self.request)
        );
        self.stream.push(acknowledged.into());
        let Some(mut heard) = heard else {
            // There is nothing to tell, but the client may wait for it as long as it likes.
            return std::future::pending().await;
        };
        loop {
            self.relay(&mut heard).await;
            match self.hear_again(heard).await {
                Some(again) => heard = again,
                None => break,
            }
            // What changed meanwhile is not known, so that everything may have.
            for message in everything(&heard.filter.honoured(), &self.request) {
                self.stream.offer(message);
            }
        }
        self.stream.end(Some(result(&self.request)), End::Answered);
    }

    /// Begins to listen within a session. Nothing when the server has no stream for it.
    async fn hear(&self, seat: Seat) -> Option<Heard> {
        let overheard = seat.line.overhear().await?;
        let filter = Filter::agree(&self.wanted, &seat).await;
        Some(Heard { seat, overheard, filter })
    }

    /// Listens again after a stream has ended: within the same session, or in another one when that is gone. Nothing when
    /// the server has no stream any more.
    async fn hear_again(&self, before: Heard) -> Option<Heard> {
        let mut pauses = Pauses::of_streams();
        pauses.pause().await;
        if let Some(overheard) = before.seat.line.overhear().await {
            return Some(Heard { overheard, ..before });
        }
        drop(before);
        loop {
            match self.client.hosts.seat("{}", Sharing::OnlyOnce).await {
                Ok(seat) => return self.hear(seat).await,
                // It has none for this client, who has to ask anew to be told why.
                Err(refused) if refused.is_final() => {
                    tracing::info!("no session is opened again for whoever listens, who is told that this is over");
                    return None;
                }
                Err(_) => pauses.pause().await,
            }
        }
    }

    /// Hands changes on until the server ends its stream.
    async fn relay(&self, heard: &mut Heard) {
        while let Some(message) = heard.overheard.next().await {
            match message.kind() {
                Kind::Notification if heard.filter.wants(&message) => self.offer(message.as_str()),
                Kind::Request => {
                    let answer = match (message.method(), message.owned_id()) {
                        (method::PING, Some(asked)) => line::result(asked.as_json(), "{}"),
                        (name, asked) => {
                            let told = format!("{name} belongs to no request, so that nobody can be asked");
                            Fault::new(METHOD_NOT_FOUND, told).answer(asked.as_ref()).into()
                        }
                    };
                    heard.seat.line.tell(answer).await;
                }
                Kind::Notification | Kind::Response => {}
            }
        }
    }

    /// Tells a change, under the name of the listener.
    fn offer(&self, message: &str) {
        if let Some(tagged) = tagged(message, &self.request) {
            self.stream.offer(tagged);
        }
    }
}
