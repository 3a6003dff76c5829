//! A server that is reached by HTTP+SSE, as lines: what it says on its stream, and what it is sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::ACCEPT;
use http::{HeaderValue, Method, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use skep_mcp::lines::{Line, LineSplitter};
use skep_mcp::sse::{Event, Piece, Splitter};
use skep_mcp::{Kind, Message};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::{BUFFER, Credentials};
use crate::answer;
use crate::budget::{Allowance, Held};
use crate::eras::http::{is_stream, refusal};
use crate::eras::line::Lost;
use crate::eras::modern_client::Running;
use crate::eras::room::Place;
use crate::limits;
use crate::stdio::{ConnectError, Connector, Streams};
use crate::transparent::upstream::{FromServer, Upstream, resolve};

/// How long a server may take to say where messages go, and to take one.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what was said before the end of a conversation may take to be sent.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Messages that the server may be slow to take.
const UNTAKEN: usize = limits::CALLS_PER_SESSION;
/// Bytes of the answer to a message, which says no more than that it was taken.
const ACCEPTED_BYTES: usize = 64 << 10;

/// A server, for one session.
#[derive(Debug)]
pub(super) struct SseServer {
    pub(super) upstream: Upstream,
    /// Where its stream is.
    pub(super) stream: Uri,
    pub(super) credentials: Arc<Credentials>,
    /// What may be held of a message.
    pub(super) allowance: Allowance,
    /// The stream that was opened to find out whether there is one.
    pub(super) opened: Mutex<Option<Opened>>,
    /// Its place among all sessions.
    pub(super) _place: Place,
}

/// A stream that is open, and where messages go.
#[derive(Debug)]
pub(super) struct Opened {
    events: Events,
    messages: Uri,
}

impl SseServer {
    /// Opens a stream.
    pub(super) async fn open(&self) -> Result<Opened, Lost> {
        tokio::time::timeout(PATIENCE, self.announced()).await.unwrap_or(Err(Lost::TimedOut))
    }

    /// Opens a stream, and waits until the server says where messages go.
    async fn announced(&self) -> Result<Opened, Lost> {
        let mut get = self.credentials.outgoing(Method::GET, self.stream.clone(), Bytes::new());
        get.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = self.upstream.send(&get).await.map_err(|_| Lost::Unreached)?;
        if response.status() != StatusCode::OK || !is_stream(response.headers()) {
            return Err(Lost::Refused(Box::new(refusal(&response))));
        }
        let mut events = Events::new(response.into_body(), self.allowance.clone());
        loop {
            let event = events.next().await.ok_or(Lost::Unreached)?;
            let event = Event::read(&event);
            if event.name != Some(b"endpoint") {
                continue;
            }
            let address = event.data.as_deref().and_then(|data| std::str::from_utf8(data).ok());
            // Whoever is sent elsewhere would show its credentials to somebody else.
            let Some(messages) = address.and_then(|address| resolve(&self.stream, address)) else {
                let told = "the MCP server wants messages at an address that is not its own";
                return Err(Lost::Refused(Box::new(answer::text(StatusCode::BAD_GATEWAY, told))));
            };
            return Ok(Opened { events, messages });
        }
    }

    fn talk(&self, opened: Opened) -> Streams {
        let (input, sent) = tokio::io::duplex(BUFFER);
        let (said, output) = tokio::io::duplex(BUFFER);
        let (refusals, refused) = mpsc::channel(limits::QUEUED_MESSAGES);
        let (upstream, credentials) = (self.upstream.clone(), Arc::clone(&self.credentials));
        let posting =
            Posting { upstream, credentials, messages: opened.messages, refusals, under_way: JoinSet::default() };
        let (posting, reading) = (posting.run(sent, self.allowance.largest), read(opened.events, refused, said));
        let talking = Running(tokio::spawn(async move {
            tokio::select! {
                () = posting => {}
                () = reading => {}
            }
        }));
        Streams { input: Box::new(input), output: Box::new(output), ending: Box::pin(end(talking).map(|()| None)) }
    }
}

/// Ends a conversation, and with it all that is under way. What was said before the end is still sent.
async fn end(mut conversation: Running) {
    if tokio::time::timeout(LAST_WORDS, &mut conversation.0).await.is_err() {
        conversation.0.abort();
        let _ = (&mut conversation.0).await;
    }
}

impl Connector for SseServer {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        Box::pin(async {
            let opened = self.opened.lock().take();
            let opened = match opened {
                Some(opened) => opened,
                None => self.open().await.map_err(|lost| {
                    // Its client has to come back and prove itself anew, or there is nothing to come back to.
                    let is_final = lost.is_final();
                    ConnectError { message: lost.fault().message.into_owned(), is_final }
                })?,
            };
            Ok(self.talk(opened))
        })
    }
}

/// The stream of a server.
#[derive(Debug)]
struct Events {
    body: FromServer,
    splitter: Splitter,
    allowance: Allowance,
    /// The room that the splitter has.
    held: Held,
}

impl Events {
    fn new(body: FromServer, allowance: Allowance) -> Self {
        Self { body, splitter: Splitter::new(allowance.largest), allowance, held: Held::default() }
    }

    /// The next event. Nothing when the stream is over, or when an event is too large to be held.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.splitter.next_piece() {
                Some(Piece::Event(event)) => return Some(std::mem::take(&mut self.held).with(event)),
                Some(Piece::Part(_)) => return None,
                None => {}
            }
            let frame = self.body.frame().await?.ok()?;
            self.splitter.push(&frame.into_data().unwrap_or_default());
            self.allowance.keep(&mut self.held, self.splitter.held()).ok()?;
        }
    }
}

/// Writes what the server says, a message to a line, and what it refused.
async fn read(mut events: Events, mut refused: mpsc::Receiver<Bytes>, mut said: DuplexStream) {
    loop {
        let line = tokio::select! {
            event = events.next() => match event {
                Some(event) => message_in(&event),
                None => return,
            },
            Some(refusal) = refused.recv() => Some(refusal),
        };
        let Some(line) = line else { continue };
        if said.write_all(&line).await.is_err() || said.write_all(b"\n").await.is_err() {
            return;
        }
    }
}

/// The message of an event, on one line. In JSON the ends of lines are never more than space.
fn message_in(event: &[u8]) -> Option<Bytes> {
    let event = Event::read(event);
    let data = event.data.as_deref().filter(|data| event.is_message() && !data.is_empty())?;
    Some(data.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect())
}

/// Sends messages.
struct Posting {
    upstream: Upstream,
    credentials: Arc<Credentials>,
    messages: Uri,
    /// What answers a request that the server refuses.
    refusals: mpsc::Sender<Bytes>,
    /// The messages that the server has not taken yet. They end with the conversation.
    under_way: JoinSet<()>,
}

impl Posting {
    async fn run(mut self, mut sent: DuplexStream, largest: usize) {
        let mut lines = LineSplitter::new(largest);
        while matches!(sent.read_buf(lines.buffer()).await, Ok(read) if read > 0) {
            while let Some(line) = lines.next_line() {
                if let Line::Whole(line) = line {
                    self.post(line).await;
                }
            }
        }
    }

    /// Sends a message, one after the other. A server that takes one only when it is done with it gets the next meanwhile.
    async fn post(&mut self, line: Bytes) {
        while self.under_way.try_join_next().is_some() {}
        if self.under_way.len() >= UNTAKEN {
            self.under_way.join_next().await;
        }
        let mut post = self.credentials.outgoing(Method::POST, self.messages.clone(), line.clone());
        post.headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (upstream, refusals) = (self.upstream.clone(), self.refusals.clone());
        let (taken, is_taken) = oneshot::channel::<()>();
        self.under_way.spawn(async move {
            // Dropped with the task, however that ends.
            let _taken = taken;
            let fault = match upstream.send(&post).await {
                Ok(response) if response.status().is_success() => {
                    // A connection whose answer was read can be used again.
                    let _ = Limited::new(response.into_body(), ACCEPTED_BYTES).collect().await;
                    return;
                }
                Ok(response) => Lost::Refused(Box::new(refusal(&response))).fault(),
                Err(_) => Lost::Unreached.fault(),
            };
            let request = Message::read(line).ok().filter(|message| message.kind() == Kind::Request);
            if let Some(request) = request {
                // Without anybody who reads it there is nobody to tell.
                let _ = refusals.send(fault.answer(request.owned_id().as_ref()).into()).await;
            }
        });
        let _ = tokio::time::timeout(PATIENCE, is_taken).await;
    }
}
