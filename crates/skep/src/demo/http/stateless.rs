//! Requests that stand alone: one exchange each, and nothing is remembered.

use std::pin::Pin;
use std::sync::Arc;

use axum::response::Response;
use futures::stream;
use http::HeaderMap;
use serde_json::Value;
use tokio::sync::mpsc;

use super::guard::Permit;
use super::refusal::{self, Refusal};
use super::{event, event_stream, headers, json};
use crate::demo::call::Call;
use crate::demo::era::Envelope;
use crate::demo::message::{self, Fault, Request};
use crate::demo::outbox::Outbox;
use crate::demo::{Demo, limits, methods};

/// Answers a request. It is called off when the client closes the connection, because nothing of it runs elsewhere.
pub(super) async fn answer(
    demo: &Arc<Demo>,
    permit: Permit,
    headers: &HeaderMap,
    request: Request,
    envelope: Envelope,
) -> Result<Response, Refusal> {
    let refused = |fault| Refusal::bad(fault, Some(request.id.clone()));
    headers::check_method(headers, &request).map_err(refused)?;
    if methods::is_stateless(&request.method) {
        headers::check_name_and_arguments(headers, &request).map_err(refused)?;
    }
    let (sender, messages) = mpsc::channel(limits::QUEUED_MESSAGES);
    let demo = Arc::clone(demo);
    let id = request.id.clone();
    let outcome = Box::pin(async move {
        let call = Call::alone(&demo, envelope, &request, Outbox::Queue(sender))?;
        methods::answer(&call, &request).await
    });
    let mut exchange = Exchange { id, outcome: Some(outcome), last: None, messages };
    // Only a request that says something before its answer needs a stream.
    Ok(match exchange.next().await {
        Some(Part::Answer(outcome)) => json(refusal::status(outcome.as_ref()), &message::answer(&exchange.id, outcome)),
        first => event_stream(
            permit,
            stream::unfold((first, exchange), async |(first, mut exchange)| {
                let part = match first {
                    Some(part) => part,
                    None => exchange.next().await?,
                };
                Some((exchange.render(part), (None, exchange)))
            }),
        ),
    })
}

type Outcome = Result<Value, Fault>;

/// A request while it is answered, and what it says meanwhile.
struct Exchange {
    id: Value,
    outcome: Option<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
    /// The outcome, while messages that were sent before it are on their way.
    last: Option<Outcome>,
    messages: mpsc::Receiver<Value>,
}

enum Part {
    Message(Value),
    Answer(Outcome),
    KeepAlive,
}

impl Exchange {
    async fn next(&mut self) -> Option<Part> {
        if let Some(outcome) = &mut self.outcome {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => return Some(Part::Message(message)),
                outcome = outcome => {
                    self.outcome = None;
                    self.last = Some(outcome);
                }
                () = tokio::time::sleep(limits::KEEP_ALIVE) => return Some(Part::KeepAlive),
            }
        }
        match self.messages.try_recv() {
            Ok(message) => Some(Part::Message(message)),
            Err(_) => self.last.take().map(Part::Answer),
        }
    }

    fn render(&self, part: Part) -> String {
        match part {
            Part::Message(message) => event(&message),
            Part::Answer(outcome) => event(&message::answer(&self.id, outcome)),
            Part::KeepAlive => ": alive\n\n".to_owned(),
        }
    }
}
