//! A record of every request: who asked for what, and how it ended.
//!
//! One line of JSON for each, made before the answer has ended or, where the client goes away before that, when it does. A
//! thread of its own writes the lines, each in one piece, and no request waits for that: a place that does not take them
//! costs records, which are counted in the log, and not requests. A proxy that stops waits until they are written, for some
//! seconds at most.
//! Neither headers nor tokens are in it; what a message says is in it only where that was asked for.

mod event;
mod outcome;
mod record;
mod settings;
mod sink;
mod watch;

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::ACCEPT;
use http::{HeaderMap, Method};

use self::event::Pending;
pub use self::settings::{AuditError, AuditSettings};
use self::sink::Sink;
use self::watch::watched;
use super::exchange::Exchange;
use super::layer::{Layer, Next};
use crate::answer::Answer;
use crate::eras::http::is_stream;
use crate::limits::FAREWELL;

/// Records requests. Around everything that may refuse one.
#[derive(Debug, Clone)]
pub struct Audit(Arc<Recorder>);

/// What is recorded, and where.
#[derive(Debug)]
struct Recorder {
    settings: AuditSettings,
    sink: Sink,
}

impl Audit {
    /// Opens the place for the records.
    pub fn new(settings: AuditSettings) -> Result<Self, AuditError> {
        settings.check()?;
        let sink = Sink::open(settings.file.as_deref())?;
        Ok(Self(Arc::new(Recorder { settings, sink })))
    }

    /// Whether somebody besides its chain has something to record, which has it twice.
    pub(super) fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 2
    }

    /// Waits until everything is written, but not for ever.
    pub(crate) async fn close(&self) {
        let recorder = Arc::clone(&self.0);
        let writing = tokio::task::spawn_blocking(move || recorder.sink.flush(FAREWELL));
        if !writing.await.unwrap_or(false) {
            tracing::error!("the last audit records are not written: nobody takes them");
        }
    }
}

impl Layer for Audit {
    fn pass<'a>(&'a self, exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let opens_stream = exchange.parts.method == Method::GET && takes_events(&exchange.parts.headers);
            let pending = Pending::new(Arc::clone(&self.0), &exchange, opens_stream, Instant::now());
            let answer = next.pass(exchange).await;
            if opens_stream || (pending.listens() && answer.status().is_success() && is_stream(answer.headers())) {
                // It may last for hours, so that its beginning is what is recorded.
                pending.begin(answer.status());
                return answer;
            }
            watched(answer, pending, &self.0.settings)
        }
        .boxed()
    }
}

fn takes_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        range.split(';').next().is_some_and(|range| range.trim().eq_ignore_ascii_case("text/event-stream"))
    })
}
