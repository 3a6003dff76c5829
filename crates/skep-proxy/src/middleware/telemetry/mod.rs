//! What happens here, for those who watch over many: spans and metrics as OpenTelemetry names them.
//!
//! ```text
//! request -> span, series (atomics) -> queue -> collector (OTLP over HTTP)
//!                        \-> page (Prometheus)
//! ```
//!
//! A request never waits for whoever is told. Everything that grows with what clients say has a largest size.

mod arguments;
mod context;
mod diagnostics;
mod ended;
mod era;
mod export;
mod meters;
mod otlp;
mod page;
mod pending;
mod process;
mod queue;
mod resource;
mod series;
mod settings;
mod span;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, OptionFuture};
use http::{HeaderValue, Method, Version};
use skep_mcp::{MetaKey, Payload};

pub(in crate::middleware) use self::arguments::address;
use self::context::{Context, TRACE_PARENT, TRACE_STATE, of_headers, state};
use self::diagnostics::Diagnostics;
use self::export::Exporter;
use self::meters::Meters;
use self::otlp::wire;
pub(crate) use self::page::PATH;
use self::page::Page;
use self::pending::Pending;
pub use self::resource::{Resource, Service};
pub use self::settings::{CollectorSettings, PrometheusSettings, TelemetryError, TelemetrySettings, collector_headers};
use self::span::{Place, Span};
use super::exchange::Exchange;
use super::layer::{Layer, Next};
use super::watch::{Watcher, watched};
use crate::answer::Answer;
use crate::body::Body;
use crate::eras::verdict::Eras;

/// What a server or a transport is called that has no name.
const UNNAMED: &str = "unknown";

/// Tells what happens. Behind the parser, and around everything that decides about single messages.
#[derive(Debug, Clone)]
pub struct Telemetry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: TelemetrySettings,
    meters: Arc<Meters>,
    /// Which share of traces is recorded; none when nobody is told of them.
    share: Option<f64>,
    exporter: Option<Exporter>,
    page: Arc<Page>,
    diagnostics: Option<Diagnostics>,
}

impl Telemetry {
    /// Begins to tell, on tasks of the runtime that this is called in. They end when the last request that is told about
    /// has ended.
    pub fn new(mut settings: TelemetrySettings) -> Result<Self, TelemetryError> {
        for name in [&mut settings.server, &mut settings.transport] {
            if name.is_empty() {
                UNNAMED.clone_into(name);
            }
        }
        let meters = Arc::new(Meters::new(&settings.server, &settings.transport));
        let page = Arc::new(Page::new(Arc::clone(&meters), &settings.resource));
        let collector = settings.collector.as_ref();
        if collector.is_some_and(|collector| collector.traces.is_none() && !collector.has_metrics) {
            return Err(TelemetryError::Silent);
        }
        let exporter = collector.map(|collector| Exporter::start(collector, &settings.resource, Arc::clone(&meters)));
        let exporter = exporter.transpose()?;
        let diagnostics =
            settings.prometheus.as_ref().map(|prometheus| Diagnostics::open(prometheus, Arc::clone(&page)));
        let diagnostics = diagnostics.transpose()?;
        if settings.prometheus.as_ref().is_some_and(|prometheus| prometheus.is_on_transport) {
            tracing::warn!("metrics are served to everybody who can reach the server, at {PATH}");
        }
        let share = collector.and_then(|collector| collector.traces);
        Ok(Self(Arc::new(Inner { settings, meters, share, exporter, page, diagnostics })))
    }

    /// Answers a request for what is counted, where it is told at the address of the server.
    pub(crate) fn page(&self, method: &Method) -> Option<Answer> {
        let prometheus = self.0.settings.prometheus.as_ref()?;
        prometheus.is_on_transport.then(|| self.0.page.answer(method))
    }

    /// Tells what is known about the era of the server, too.
    pub(crate) fn watch(&self, eras: &Arc<Eras>) {
        self.0.meters.watch(eras);
    }

    /// Whether somebody besides its chain has something to tell, which has it twice.
    pub(super) fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 2
    }

    /// Tells everything that is known, and gives ports back.
    pub(crate) async fn close(&self) {
        let diagnostics = OptionFuture::from(self.0.diagnostics.as_ref().map(Diagnostics::close));
        let exporter = OptionFuture::from(self.0.exporter.as_ref().map(Exporter::flush));
        tokio::join!(diagnostics, exporter);
    }
}

impl Layer for Telemetry {
    fn pass<'a>(&'a self, mut exchange: Box<Exchange<'a>>, next: Next<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let opens_stream = exchange.parts.method == Method::GET && exchange.parts.uri.path().ends_with("/sse");
            let span = match self.0.trace(&mut exchange) {
                Ok(span) => span,
                Err(refusal) => return refusal,
            };
            if opens_stream {
                return self.0.stream(exchange, next, span).await;
            }
            let pending = Pending::new(&self.0, &exchange, span);
            let answer = next.pass(exchange).await;
            pending.answered(answer)
        }
        .boxed()
    }
}

impl Inner {
    /// Finds the place of a request in its trace, and tells it to the server, wherever the client has told its own.
    fn trace(&self, exchange: &mut Exchange<'_>) -> Result<Option<Span>, Answer> {
        let Some(share) = self.share else { return Ok(None) };
        let message = match exchange.known() {
            Some(Payload::Single(message)) => Some(message),
            _ => None,
        };
        let in_message = message.and_then(|message| {
            let parent = Context::parse(&message.meta_text(MetaKey::TraceParent)?)?;
            let state = message.meta_text(MetaKey::TraceState).map(|text| state(&text)).unwrap_or_default();
            Some((message, message.meta_span(MetaKey::TraceParent)?, parent, state))
        });
        let told = in_message.as_ref().map(|(_, _, parent, state)| (*parent, state.clone()));
        let (parent, state) = told.or_else(|| of_headers(&exchange.parts.headers)).unzip();
        let context = Context::below(parent, share);
        let text = context.text();
        let changed =
            in_message.map(|(message, place, ..)| message.with([(place, &*[b"\"", &text[..], b"\""].concat())]));
        if let Some(text) = changed {
            exchange.replace(text)?;
        }
        let state = state.unwrap_or_default();
        let headers = &mut exchange.parts.headers;
        headers.remove(TRACE_STATE);
        for (name, text) in [(TRACE_PARENT, &text[..]), (TRACE_STATE, state.as_bytes())] {
            if let Some(value) = HeaderValue::from_bytes(text).ok().filter(|value| !value.is_empty()) {
                headers.insert(name, value);
            }
        }
        let place = Place { context, parent, state };
        Ok(context.is_sampled.then(|| Span::start(place, &self.settings, exchange)))
    }

    /// A stream of HTTP+SSE may last for hours, so that its beginning is what is told.
    async fn stream(&self, exchange: Box<Exchange<'_>>, next: Next<'_>, span: Option<Span>) -> Answer {
        self.meters.stream_opened(exchange.parts.method.as_str());
        if let Some(mut span) = span {
            span.rename("sse.connection_established");
            span.say("sse.event_type", "connection_established");
            self.record(span.end(None));
        }
        let active = self.meters.connection(true);
        let answer = next.pass(exchange).await;
        if matches!(answer.body(), Body::Full(_)) {
            return answer;
        }
        answer.map(|body| watched(body, Open { _active: active }))
    }

    fn record(&self, span: wire::Message) {
        if let Some(exporter) = &self.exporter {
            exporter.queue().push(span);
        }
    }
}

/// A stream that is open.
struct Open {
    _active: meters::Active,
}

impl Watcher for Open {
    fn see(&mut self, _: &[u8]) {}

    fn end(&mut self) {}
}

/// The version of HTTP that a request came by, before a server that speaks HTTP.
fn http_version(transport: &str, version: Version) -> Option<&'static str> {
    let version = match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    };
    (transport != "stdio").then_some(version)
}
