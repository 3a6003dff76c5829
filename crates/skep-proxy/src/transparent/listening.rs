//! Clients that listen by a request, before a server of the same era: their stream goes on when the server's ends.
//!
//! The client has asked once and is answered once. When its server ends or loses the stream, the same request is made
//! again; what the client is told twice by that is left out, and what it may have missed counts as changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use http::header::CONTENT_ENCODING;
use serde_json::Value;
use skep_mcp::sse::{Event, comment};
use skep_mcp::{Kind, Message, method};

use super::same_era::{LookedAt, message_event};
use super::upstream::{Outgoing, Upstream};
use crate::body::{Body, BodyError};
use crate::eras::alone::Alone;
use crate::eras::http::is_stream;
use crate::eras::line::is_away;
use crate::eras::listen;
use crate::limits::KEEP_ALIVE;
use crate::passing::{After, Change};
use crate::pauses::Pauses;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// A stream that lasted for so long is one that the server wants to have.
const STEADY: Duration = Duration::from_secs(30);
/// So many streams in a row may be shorter. After that the server does not want any.
const SHORT: u32 = 5;

/// What makes a request once more.
pub(super) struct Again {
    upstream: Upstream,
    outgoing: Outgoing,
}

impl Again {
    /// For a client that listens. Nothing else is ever asked twice.
    pub(super) fn of(alone: &Alone, upstream: &Upstream, outgoing: Outgoing) -> Option<Self> {
        let is_listening = alone.request.method() == method::LISTEN;
        is_listening.then(|| Self { upstream: upstream.clone(), outgoing })
    }

    async fn ask(&self) -> Asked {
        let Ok(Ok(response)) = tokio::time::timeout(PATIENCE, self.upstream.send(&self.outgoing)).await else {
            return Asked::Away;
        };
        let (status, headers) = (response.status(), response.headers());
        if status == StatusCode::OK && is_stream(headers) && !headers.contains_key(CONTENT_ENCODING) {
            return Asked::Opened(Body::FromServer(response.into_body()));
        }
        if is_away(status) { Asked::Away } else { Asked::Refused }
    }

    /// Asks when it is time to.
    async fn ask_after(self: Arc<Self>, mut pauses: Pauses) -> (Pauses, Asked) {
        pauses.pause().await;
        (pauses, self.ask().await)
    }
}

/// What came of a request that was made once more.
enum Asked {
    Opened(Body),
    /// The server may have a stream later.
    Away,
    /// It has none for this client, who has to ask anew to be told why.
    Refused,
}

/// The stream of somebody who listens.
pub(super) struct Listening {
    looked_at: LookedAt,
    again: Arc<Again>,
    /// The request that is about to be made once more.
    asking: Option<BoxFuture<'static, (Pauses, Asked)>>,
    /// Whether the client knows what it will be told.
    is_acknowledged: bool,
    /// Whether the stream has taken the place of another, and the server has not said yet what it will tell on it.
    is_new: bool,
    /// Whether the server has said its last word on this stream, and whether it does not want another one.
    is_over: bool,
    is_refused: bool,
    /// Whether the client has got the beginning of an event that is too large to be held.
    is_torn: bool,
    streams: Streams,
}

/// How the streams of the server have ended so far.
struct Streams {
    /// When the newest one began, unless it has ended.
    begun: Option<Instant>,
    /// How many in a row were short.
    short: u32,
    pauses: Pauses,
}

impl Streams {
    fn new() -> Self {
        Self { begun: None, short: 0, pauses: Pauses::of_streams() }
    }

    fn begin(&mut self, now: Instant) {
        self.begun = Some(now);
    }

    /// Notes that the newest one has ended, and tells whether the server wants no more of them.
    fn end(&mut self, now: Instant) -> bool {
        if let Some(begun) = self.begun.take() {
            if now.duration_since(begun) >= STEADY {
                *self = Self::new();
            }
            self.short += 1;
            tracing::debug!(short = self.short, "the MCP server has ended a stream of changes");
        }
        self.short > SHORT
    }
}

impl Listening {
    pub(super) fn new(looked_at: LookedAt, again: Again) -> Self {
        let mut streams = Streams::new();
        streams.begin(Instant::now());
        Self {
            looked_at,
            again: Arc::new(again),
            asking: None,
            is_acknowledged: false,
            is_new: false,
            is_over: false,
            is_refused: false,
            is_torn: false,
            streams,
        }
    }

    /// What the client gets of a message in place of it, if that is not the message.
    fn instead(&mut self, message: &Message) -> Option<Bytes> {
        match message.kind() {
            Kind::Response if self.is_acknowledged => {
                self.is_over = true;
                // An answer to the new request; what is said to one that listened for a while is a farewell.
                self.is_refused = self.is_new && message.error().is_some();
                Some(Bytes::new())
            }
            Kind::Notification if message.method() == method::ACKNOWLEDGED => {
                let is_first = !std::mem::replace(&mut self.is_acknowledged, true);
                self.is_new = false;
                (!is_first).then(|| self.everything(message))
            }
            _ => None,
        }
    }

    /// What changed while nobody listened is not known, so that everything may have.
    fn everything(&self, acknowledged: &Message) -> Bytes {
        let told: Value = serde_json::from_str(acknowledged.as_str()).unwrap_or_default();
        let all = listen::everything(&told["params"]["notifications"], &self.looked_at.alone.request);
        all.iter().flat_map(|message| message_event(message)).collect()
    }

    fn give_up(&self) -> After {
        tracing::info!("the MCP server has no stream of changes any more; its client is told that it is over");
        After::End(Some(message_event(&listen::result(&self.looked_at.alone.request)).into()))
    }
}

impl Change for Listening {
    async fn event(&mut self, event: Bytes) -> Bytes {
        if self.is_over {
            return Bytes::new();
        }
        self.is_torn = false;
        let read = Event::read(&event);
        let data = read.data.as_deref().filter(|data| read.is_message() && !data.is_empty());
        let instead = match data.map(|data| Message::read(Bytes::copy_from_slice(data))) {
            Some(Ok(message)) => self.instead(&message),
            // The server has stopped in the midst of it, and the client would take what follows for its end.
            Some(Err(_)) => Some(Bytes::new()),
            None => None,
        };
        match instead {
            Some(instead) => instead,
            None => self.looked_at.event(event).await,
        }
    }

    fn part(&mut self, part: Bytes) -> Result<Bytes, BodyError> {
        self.is_torn = true;
        self.looked_at.part(part)
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    async fn after(&mut self, is_whole: bool) -> After {
        if !self.is_acknowledged || self.is_torn {
            return self.looked_at.after(is_whole).await;
        }
        if self.streams.end(Instant::now()) || self.is_refused {
            return self.give_up();
        }
        let asking = self.asking.get_or_insert_with(|| {
            let pauses = std::mem::replace(&mut self.streams.pauses, Pauses::of_streams());
            Arc::clone(&self.again).ask_after(pauses).boxed()
        });
        // The client sees that its stream is alive, however long that takes.
        let alive = || After::Meanwhile(comment("keep-alive").into());
        let Ok((pauses, asked)) = tokio::time::timeout(KEEP_ALIVE, asking).await else { return alive() };
        (self.streams.pauses, self.asking) = (pauses, None);
        match asked {
            Asked::Opened(body) => {
                (self.is_new, self.is_over) = (true, false);
                self.streams.begin(Instant::now());
                After::Another(body)
            }
            Asked::Away => alive(),
            Asked::Refused => self.give_up(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_ends_all_of_its_streams_at_once_does_not_want_any() {
        let (mut streams, mut now) = (Streams::new(), Instant::now());
        let mut end_after = |lasted: Duration| {
            streams.begin(now);
            now += lasted;
            let is_enough = streams.end(now);
            assert_eq!(streams.end(now + STEADY), is_enough, "it ends once, however often it is then tried");
            is_enough
        };
        for _ in 0..SHORT {
            assert!(!end_after(STEADY / 2));
        }
        assert!(!end_after(STEADY), "this one was wanted");
        for _ in 1..SHORT {
            assert!(!end_after(Duration::ZERO));
        }
        assert!(end_after(Duration::ZERO));
    }
}
