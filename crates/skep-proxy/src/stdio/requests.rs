//! What the proxy does with the messages of clients, whichever transport they came by.

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use skep_mcp::fault::{Fault, METHOD_NOT_FOUND};
use skep_mcp::{Message, Param, method};

use super::audience::Audience;
use super::bridge::Bridge;
use super::caller::Caller;
use super::clients::Client;
use super::events::{End, EventStream};
use super::handshake::{self, Refusal};
use super::outbox::Full;
use super::subscriptions::Changed;
use crate::answer::{self, Answer};

impl Bridge {
    /// Makes sure that the server is past its handshake, whoever asks.
    pub(super) async fn require_handshake(&self, message: &Message) -> Result<(), Answer> {
        let agreed = self.handshake().agree(self.calls(), None).await;
        agreed.map(drop).map_err(|refusal| match &*refusal {
            Refusal::Full => Full::answer(),
            refusal => {
                let id = message.owned_id();
                answer::json(StatusCode::BAD_GATEWAY, handshake::refusal(id.as_ref(), refusal))
            }
        })
    }

    /// Takes a message of a session that wants no answer.
    pub(super) async fn notified(&self, client: &Client, message: &Message) {
        match message.method() {
            // The server was told when its handshake was made.
            method::INITIALIZED => {}
            // It asks clients that share it nothing that could make progress.
            method::PROGRESS if self.audience() == Audience::Everybody => {}
            method::CANCELLED => {
                let id = message.param(Param::RequestId);
                if let Some(number) = id.and_then(|id| self.calls().find(&client.id, id)) {
                    self.calls().cancel(number);
                }
            }
            name => {
                if self.calls().send(message.text().clone()).await.is_err() {
                    tracing::error!(method = name, "the MCP server does not read; a notification is lost");
                }
            }
        }
    }

    /// Takes the answer of a client to a question of the server. A server that clients share asks nothing, so that there it
    /// can only be the answer to a question of somebody else.
    pub(super) async fn replied(&self, message: &Message) {
        if self.audience() == Audience::OneSession && self.calls().send(message.text().clone()).await.is_err() {
            tracing::error!("the MCP server does not read; the answer to its question is lost");
        }
    }

    /// The answer to a request that the server need not or must not see, or must see in another way because clients share it.
    pub(super) async fn answer_locally(&self, client: Option<&Client>, message: &Message) -> Option<Bytes> {
        let done = || Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, message.id().unwrap_or("0")));
        if message.method() == method::PING {
            return Some(done());
        }
        let unknown = |why: &str| {
            let fault = Fault::new(METHOD_NOT_FOUND, format!("Method not found: {}{why}", message.method()));
            Some(fault.answer(message.owned_id().as_ref()).into())
        };
        if matches!(message.method(), method::DISCOVER | method::LISTEN) {
            return unknown("; it belongs to requests that stand alone");
        }
        if self.audience() == Audience::Everybody && message.method().starts_with(method::TASKS) {
            return unknown("; clients share the MCP server");
        }
        let client = client?;
        let uri = message.param_text(Param::Uri).filter(|uri| !uri.is_empty());
        match message.method() {
            method::SUBSCRIBE => {
                let mut answer = None;
                let ask = async || {
                    let (end, text) = self.forward(client.into(), message).await;
                    answer = Some(text);
                    end
                };
                let uri = uri?;
                let is_there = || self.clients().get(&client.id).is_some();
                let tell = || self.tell_unsubscribed(&uri);
                let changed = self.subscriptions().add(&client.id, &uri, is_there, ask, tell).await;
                Some(match changed {
                    Ok(Changed::Asked) => answer.unwrap_or_else(done),
                    Ok(Changed::Alone) => done(),
                    Err(unwatched) => unwatched.fault().answer(message.owned_id().as_ref()).into(),
                })
            }
            method::UNSUBSCRIBE => {
                let mut answer = None;
                let tell = async || answer = Some(self.forward(client.into(), message).await.1);
                self.subscriptions().remove(&client.id, &uri?, tell).await;
                Some(answer.unwrap_or_else(done))
            }
            method::SET_LOG_LEVEL => {
                let level = message.param_text(Param::Level)?;
                let is_there = || self.clients().get(&client.id).is_some();
                let wanted = self.log_levels().set(&client.id, &level, is_there);
                if self.audience() == Audience::OneSession {
                    // What the client asks next counts on it.
                    return Some(self.forward(client.into(), message).await.1);
                }
                if let Some(level) = wanted {
                    self.tell(method::SET_LOG_LEVEL, &json!({"level": level}));
                }
                Some(done())
            }
            _ => None,
        }
    }

    /// Nobody watches a resource any more.
    pub(super) fn tell_unsubscribed(&self, uri: &str) {
        self.tell(method::UNSUBSCRIBE, &json!({"uri": uri}));
    }

    /// The answer to a request whose client takes no stream.
    pub(super) async fn ask(&self, client: &Client, message: &Message) -> Bytes {
        if let Err(refusal) = self.handshake().agree(self.calls(), None).await {
            return handshake::refusal(message.owned_id().as_ref(), &refusal).into();
        }
        match self.answer_locally(Some(client), message).await {
            Some(answer) => answer,
            None => self.forward(client.into(), message).await.1,
        }
    }

    /// Sends a request and waits for its answer.
    async fn forward(&self, caller: Caller<'_>, message: &Message) -> (End, Bytes) {
        let stream = EventStream::new(0, false);
        match self.calls().begin(message, caller, &stream, true).await {
            Ok(_ticket) => stream.outcome().await,
            Err(why) => (End::Lost, why.fault().answer(message.owned_id().as_ref()).into()),
        }
    }
}
