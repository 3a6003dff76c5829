//! The process as a server that is talked to in the words of its era, whatever the client's era is.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use skep_mcp::{Message, method};

use super::audience::Audience;
use super::bridge::Bridge;
use super::caller::Caller;
use super::clients::Client;
use super::events::{End, EventStream};
use super::handshake::Refusal;
use crate::eras::line::{Hosts, Line, Lost, NoSession, Replies, Seat, Sharing};

/// How long the process may take to say what it speaks. There is nothing between us that could be slow.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the process for one client.
#[derive(Debug, Clone)]
pub(super) struct ProcessLine {
    bridge: Arc<Bridge>,
    /// The session under which the client is told what belongs to no request, once it listens.
    listener: OnceLock<Arc<Client>>,
}

impl ProcessLine {
    pub(super) fn new(bridge: &Arc<Bridge>) -> Self {
        Self { bridge: Arc::clone(bridge), listener: OnceLock::new() }
    }
}

impl Line for ProcessLine {
    fn ask<'a>(&'a self, request: &'a Message) -> BoxFuture<'a, Result<Replies, Lost>> {
        Box::pin(async {
            let listener = self.listener.get().filter(|_| request.method() == method::SUBSCRIBE);
            if let Some(listener) = listener
                && let Some(answer) = self.bridge.answer_locally(Some(listener), request).await
            {
                let answer = Message::read(answer).map_err(|_| Lost::Unreached)?;
                return Ok(futures::stream::once(std::future::ready(answer)).boxed());
            }
            // Whoever has the process alone hears all that it says.
            let stream = EventStream::new(0, self.bridge.audience() == Audience::OneSession);
            let ticket = self.bridge.calls().begin(request, Caller::default(), &stream, true).await;
            let ticket = ticket.map_err(|why| Lost::Refused(Box::new(why.answer(request))))?;
            Ok(stream.messages(ticket))
        })
    }

    fn hear<'a>(&'a self, request: &'a Message) -> BoxFuture<'a, Result<Message, Lost>> {
        Box::pin(async {
            let stream = EventStream::new(0, false);
            let ticket = self.bridge.calls().begin(request, Caller::default(), &stream, true).await;
            // Whoever stops to wait calls it off.
            let _ticket = ticket.map_err(|why| Lost::Refused(Box::new(why.answer(request))))?;
            match stream.outcome().await {
                (End::Answered | End::Refused(_), answer) => Message::read(answer).map_err(|_| Lost::Unreached),
                (End::TimedOut, _) => Err(Lost::TimedOut),
                (End::Lost | End::Stopped | End::Closed, _) => Err(Lost::Unreached),
            }
        })
    }

    fn tell(&self, message: Bytes) -> BoxFuture<'_, bool> {
        Box::pin(async { self.bridge.calls().send(message).await.is_ok() })
    }

    fn overhear(&self) -> BoxFuture<'_, Option<Replies>> {
        Box::pin(async {
            let client = self.bridge.open_listener();
            let unheard = Unheard { bridge: Arc::clone(&self.bridge), id: Arc::clone(&client.id) };
            let messages = client.background().messages(unheard);
            self.listener.set(client).ok()?;
            Some(messages)
        })
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn doubt(&self) {
        self.bridge.eras().suspect();
    }

    fn takes_handshake(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            // One that has ended is followed by another, which may take a moment.
            let ready = tokio::time::timeout(PATIENCE, self.bridge.readiness().ready()).await;
            ready.is_ok() && self.bridge.handshake().agree(self.bridge.calls(), None).await.is_ok()
        })
    }
}

/// Ends the listening with its stream.
#[derive(Debug)]
struct Unheard {
    bridge: Arc<Bridge>,
    id: Arc<str>,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        self.bridge.close_listener(&self.id);
    }
}

/// The one session of the process, which all clients share.
#[derive(Debug)]
pub(super) struct SharedProcess(pub(super) Arc<Bridge>);

impl Hosts for SharedProcess {
    fn seat<'a>(&'a self, _: &'a str, _: Sharing) -> BoxFuture<'a, Result<Seat, NoSession>> {
        Box::pin(async {
            let agreed = self.0.handshake().agree(self.0.calls(), None).await;
            if agreed.as_ref().is_err_and(|refusal| matches!(**refusal, Refusal::Error(_))) {
                // A process of sessions would have agreed.
                self.0.eras().forget();
            }
            let agreed = agreed.map_err(|refusal| Refusal::no_session(&refusal))?;
            Ok(Seat { line: Arc::new(ProcessLine::new(&self.0)), agreed, held: None })
        })
    }

    fn has_own_sessions(&self) -> bool {
        false
    }
}
