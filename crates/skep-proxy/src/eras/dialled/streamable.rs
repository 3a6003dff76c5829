//! A server that is reached by streamable HTTP, as lines: for clients that have one stream for everything.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::HeaderValue;
use parking_lot::Mutex;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use skep_mcp::lines::{Line as Text, LineSplitter};
use skep_mcp::{Kind, Message, MetaKey, Param, Revision, method, translate};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{BUFFER, Credentials};
use crate::eras::http::HttpLine;
use crate::eras::line::{Line, Lost, Replies};
use crate::eras::modern_client::Running;
use crate::eras::room::Place;
use crate::limits;
use crate::pauses::Pauses;
use crate::stdio::{ConnectError, Connector, Streams};

/// How long what was said before the end of a conversation may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often in a row a stream that was there is looked for.
const ATTEMPTS: u32 = 10;
/// A stream that lasted so long did not just break.
const STEADY: Duration = Duration::from_secs(10);

/// A server, for one session.
#[derive(Debug)]
pub(super) struct StreamableServer {
    pub(super) line: HttpLine,
    pub(super) credentials: Arc<Credentials>,
    /// So many bytes one message may have.
    pub(super) largest: usize,
    /// Cancelled when the server does not take any more what the client proves itself with, so that the client has to come
    /// back with something else.
    pub(super) denied: CancellationToken,
    /// Its place among all sessions.
    pub(super) _place: Place,
}

impl Connector for StreamableServer {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        if self.denied.is_cancelled() {
            let message = "the MCP server does not take what the client proves itself with any more".to_owned();
            return Box::pin(std::future::ready(Err(ConnectError { message, is_final: true })));
        }
        let (input, sent) = tokio::io::duplex(BUFFER);
        let (said, output) = tokio::io::duplex(BUFFER);
        let (sender, lines) = mpsc::channel(limits::QUEUED_MESSAGES);
        let session = Arc::<Mutex<Option<HttpLine>>>::default();
        let talk = Talk {
            line: self.line.clone(),
            credentials: Arc::clone(&self.credentials),
            agreed: None,
            session: Arc::clone(&session),
            lost: CancellationToken::new(),
            denied: self.denied.clone(),
            is_heard: Arc::default(),
            said: sender,
            running: Arc::default(),
            listening: None,
        };
        let (talking, writing) = (talk.run(sent, self.largest), write(lines, said));
        let running = Running(tokio::spawn(async move {
            tokio::pin!(writing);
            tokio::select! {
                // Whoever was answered by then is still told.
                () = talking => drop(tokio::time::timeout(LAST_WORDS, writing).await),
                () = &mut writing => {}
            }
        }));
        let ended = end(running, session, Arc::clone(&self.credentials));
        let ending = Box::pin(ended.map(|()| None));
        Box::pin(std::future::ready(Ok(Streams { input: Box::new(input), output: Box::new(output), ending })))
    }
}

/// Ends a conversation, and then its session at the server, if there is one.
async fn end(mut conversation: Running, session: Arc<Mutex<Option<HttpLine>>>, credentials: Arc<Credentials>) {
    conversation.0.abort();
    // It could still begin a session.
    let _ = (&mut conversation.0).await;
    let session = session.lock().take();
    if let Some(line) = session {
        credentials.on(&line).end().await;
    }
}

/// Writes what the server says, a message to a line. In JSON the ends of lines are never more than space.
async fn write(mut lines: mpsc::Receiver<Bytes>, mut said: DuplexStream) {
    while let Some(line) = lines.recv().await {
        let mut line: Vec<u8> =
            line.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
        line.push(b'\n');
        if said.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// A conversation with the server.
struct Talk {
    line: HttpLine,
    credentials: Arc<Credentials>,
    /// The session that the server gave, if it did, and the revision that was agreed on.
    agreed: Option<(Option<HeaderValue>, Revision)>,
    /// The way to the server within that session, for whoever ends it.
    session: Arc<Mutex<Option<HttpLine>>>,
    /// Cancelled when the server does not know the session any more.
    lost: CancellationToken,
    /// Cancelled when it refuses to be listened to as it was before.
    denied: CancellationToken,
    /// Whether somebody has listened by a request.
    is_heard: Arc<AtomicBool>,
    said: mpsc::Sender<Bytes>,
    /// Requests that wait for their answers, by their ids.
    running: Arc<Mutex<HashMap<Box<str>, Running>>>,
    /// What listens for what belongs to no request.
    listening: Option<Running>,
}

impl Talk {
    /// Talks until nobody sends any more, or until the session is lost. In the next conversation there is a handshake.
    async fn run(mut self, sent: DuplexStream, largest: usize) {
        let (lost, denied) = (self.lost.clone(), self.denied.clone());
        tokio::select! {
            () = denied.cancelled() => {}
            () = lost.cancelled() => {
                // There is none that could be ended.
                *self.session.lock() = None;
            }
            () = self.read(sent, largest) => {}
        }
    }

    async fn read(&mut self, mut sent: DuplexStream, largest: usize) {
        let mut lines = LineSplitter::new(largest);
        while matches!(sent.read_buf(lines.buffer()).await, Ok(read) if read > 0) {
            while let Some(line) = lines.next_line() {
                let Text::Whole(line) = line else { continue };
                if let Ok(message) = Message::read(line) {
                    self.take(message).await;
                }
            }
        }
    }

    /// The way to the server now: in the words of the other era for what stands alone, and in those of the session.
    fn line(&self, message: &Message) -> HttpLine {
        let line = self.credentials.on(&self.line);
        match &self.agreed {
            _ if message.meta(MetaKey::ProtocolVersion).is_some() => line,
            Some((session, revision)) => line.within(session.clone(), *revision),
            None => line.legacy(),
        }
    }

    async fn take(&mut self, message: Message) {
        let line = self.line(&message);
        match (message.kind(), message.method()) {
            (Kind::Request, method::INITIALIZE) => self.begin(&line, &message).await,
            (Kind::Request, _) => self.ask(line, message),
            (Kind::Notification, method::CANCELLED) => {
                // Whoever stops to read the answer calls the request off.
                let id = message.param(Param::RequestId).unwrap_or_default();
                self.running.lock().remove(id);
            }
            (_, name) => {
                // It has a time limit of its own, so that what follows does not wait for ever.
                line.tell(message.text().clone()).await;
                if name == method::INITIALIZED {
                    self.listen(line);
                }
            }
        }
    }

    /// Makes the handshake. Nothing else is sent meanwhile.
    async fn begin(&mut self, line: &HttpLine, handshake: &Message) {
        let (session, mut replies) = match line.shake_hands(handshake).await {
            Ok(begun) => begun,
            Err(lost) => return refuse(&self.said, handshake, &lost.fault()).await,
        };
        while let Some(reply) = replies.next().await {
            if let Some(revision) = reply.result().and_then(translate::agreed) {
                self.agreed = Some((session.clone(), revision));
                *self.session.lock() = Some(line.within(session.clone(), revision));
            }
            // Without anybody who reads it there is nobody to tell.
            let _ = self.said.send(reply.text().clone()).await;
        }
    }

    fn ask(&self, line: HttpLine, request: Message) {
        let (said, lost, running) = (self.said.clone(), self.lost.clone(), Arc::downgrade(&self.running));
        let (denied, is_heard) = (self.denied.clone(), Arc::clone(&self.is_heard));
        let id: Box<str> = request.id().unwrap_or_default().into();
        let waiting = id.clone();
        // Held until it is among them, which it leaves at its end.
        let mut all = self.running.lock();
        let task = tokio::spawn(async move {
            match line.ask(&request).await {
                Ok(replies) if request.method() == method::LISTEN => {
                    is_heard.store(true, Ordering::Relaxed);
                    pass(named(replies, &request), &said).await;
                }
                Ok(replies) => pass(replies, &said).await,
                Err(Lost::NoSession) => {
                    let told = "the MCP server has lost the session and did nothing; another one is begun";
                    refuse(&said, &request, &Fault::new(INTERNAL_ERROR, told)).await;
                    lost.cancel();
                }
                Err(problem) => {
                    refuse(&said, &request, &problem.fault()).await;
                    let is_again = request.method() == method::LISTEN && is_heard.load(Ordering::Relaxed);
                    if is_again && problem.is_challenge() {
                        denied.cancel();
                    }
                }
            }
            if let Some(running) = running.upgrade() {
                running.lock().remove(&waiting);
            }
        });
        all.insert(id, Running(task));
    }

    fn listen(&mut self, line: HttpLine) {
        let listening = listen(line, Arc::clone(&self.credentials), self.said.clone(), self.denied.clone());
        self.listening = Some(Running(tokio::spawn(listening)));
    }
}

/// Hands on what belongs to no request. A server that opens no stream for it at first has none. One that does not open
/// it again may be away for a while, or not take what the client proves itself with any more.
async fn listen(line: HttpLine, credentials: Arc<Credentials>, said: mpsc::Sender<Bytes>, denied: CancellationToken) {
    let mut pauses = Pauses::of_streams();
    let (mut attempts, mut is_heard) = (1, false);
    loop {
        let begun = Instant::now();
        let now = credentials.on(&line);
        let replies = now.listen().await;
        if is_heard && matches!(&replies, Err(lost) if lost.is_challenge()) {
            return denied.cancel();
        }
        attempts = if replies.is_ok() { ATTEMPTS } else { attempts - 1 };
        if attempts == 0 {
            return;
        }
        if let Ok(replies) = replies {
            is_heard = true;
            pass(replies, &said).await;
            if begun.elapsed() > STEADY {
                pauses = Pauses::of_streams();
            }
        }
        pauses.pause().await;
    }
}

async fn pass(mut replies: Replies, said: &mpsc::Sender<Bytes>) {
    while let Some(reply) = replies.next().await {
        if said.send(reply.text().clone()).await.is_err() {
            return;
        }
    }
}

/// What a server tells somebody who listens, under the name that the listener has here.
fn named(replies: Replies, listener: &Message) -> Replies {
    let id = listener.id().unwrap_or_default().to_owned();
    let named = move |message: Message| {
        let change = message.meta_span(MetaKey::SubscriptionId).map(|place| (place, id.as_bytes()));
        let named = change.and_then(|change| Message::read(message.with([change])).ok());
        named.unwrap_or(message)
    };
    replies.map(named).boxed()
}

/// Answers a request that the server does not.
async fn refuse(said: &mpsc::Sender<Bytes>, request: &Message, fault: &Fault) {
    // Without anybody who reads it there is nobody to tell.
    let _ = said.send(fault.answer(request.owned_id().as_ref()).into()).await;
}
