//! Tells a collector, apart from requests: they leave what is to be told in a queue and never wait for anybody.
//!
//! A collector that is away or busy is told later. What is counted is told again each time, so that nothing of it is lost.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;

use super::meters::Meters;
use super::otlp::wire::Message;
use super::otlp::{self, metrics, traces};
use super::queue::Queue;
use super::resource::Resource;
use super::settings::{CollectorSettings, TelemetryError};
use crate::fetch::{FetchError, FetchPolicy, Fetcher, TlsFiles};
use crate::limits::FAREWELL;

/// How long a collector may take for one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// So much of what a collector answers is read.
const ANSWER: usize = 64 << 10;

/// The way to a collector.
#[derive(Debug)]
pub(super) struct Exporter {
    queue: Arc<Queue>,
    orders: mpsc::Sender<oneshot::Sender<()>>,
}

impl Exporter {
    /// Begins to tell a collector, on a task that ends when this is dropped and everything was told.
    pub(super) fn start(
        settings: &CollectorSettings,
        resource: &Resource,
        meters: Arc<Meters>,
    ) -> Result<Self, TelemetryError> {
        let policy = FetchPolicy {
            allows_private: true,
            allows_http: settings.is_insecure,
            tls: TlsFiles { authorities: settings.authorities.clone(), ..TlsFiles::default() },
            head: PATIENCE,
            patience: PATIENCE,
        };
        let queue = Arc::new(Queue::default());
        let teller = Teller {
            fetcher: Fetcher::new(policy)?,
            traces: settings.traces.map(|_| settings.address("traces")).transpose()?,
            metrics: settings.has_metrics.then(|| settings.address("metrics")).transpose()?,
            headers: settings.headers.clone(),
            resource: otlp::resource(resource),
            meters,
            queue: Arc::clone(&queue),
            is_heard: true,
        };
        for address in [&teller.traces, &teller.metrics].into_iter().flatten() {
            teller.fetcher.check(address)?;
        }
        let (orders, incoming) = mpsc::channel(1);
        tokio::spawn(teller.run(settings.interval, settings.delay, incoming));
        Ok(Self { queue, orders })
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Tells everything that is known now. A collector that takes too long is not waited for.
    pub(super) async fn flush(&self) {
        let told = async {
            let (done, told) = oneshot::channel();
            if self.orders.send(done).await.is_ok() {
                let _ = told.await;
            }
        };
        if tokio::time::timeout(FAREWELL, told).await.is_err() {
            tracing::warn!("the collector is too slow to hear the last of what happened");
        }
    }
}

/// Whether something has to be told again.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Told,
    Later,
    Never,
}

struct Teller {
    fetcher: Fetcher,
    traces: Option<Uri>,
    metrics: Option<Uri>,
    headers: HeaderMap,
    resource: Message,
    meters: Arc<Meters>,
    queue: Arc<Queue>,
    /// Whether the last thing was heard.
    is_heard: bool,
}

impl Teller {
    async fn run(mut self, interval: Duration, delay: Duration, mut orders: mpsc::Receiver<oneshot::Sender<()>>) {
        let queue = Arc::clone(&self.queue);
        let [mut metrics, mut spans] = [interval, delay].map(|period| {
            let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        loop {
            tokio::select! {
                order = orders.recv() => {
                    // Once more if need be: a connection that was kept may have been closed.
                    let _ = self.tell_spans().await || self.tell_spans().await;
                    let _ = self.tell_metrics().await || self.tell_metrics().await;
                    let Some(done) = order else { return };
                    // Whoever asked may have stopped to wait.
                    let _ = done.send(());
                }
                _ = metrics.tick() => {
                    self.tell_metrics().await;
                }
                _ = spans.tick() => {
                    self.tell_spans().await;
                }
                () = queue.filled(), if self.is_heard => {
                    self.tell_spans().await;
                }
            }
        }
    }

    /// Whether nothing is left to be told.
    async fn tell_spans(&mut self) -> bool {
        let Some(address) = self.traces.clone() else { return true };
        let lost = self.queue.lost();
        if lost > 0 {
            tracing::warn!(lost, "spans found no place in the queue for the collector");
        }
        loop {
            let batch = self.queue.take();
            if batch.is_empty() {
                return true;
            }
            if self.tell(&address, traces(&self.resource, &batch)).await == Outcome::Later {
                self.queue.put_back(batch);
                return false;
            }
        }
    }

    /// The same for what is counted.
    async fn tell_metrics(&mut self) -> bool {
        let Some(address) = self.metrics.clone() else { return true };
        let readings = self.meters.read();
        if readings.is_empty() {
            return true;
        }
        let text = metrics(&self.resource, &readings, self.meters.began, SystemTime::now());
        self.tell(&address, text).await != Outcome::Later
    }

    async fn tell(&mut self, address: &Uri, body: Bytes) -> Outcome {
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = address.clone();
        let headers = request.headers_mut();
        *headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("skep-proxy/", env!("CARGO_PKG_VERSION"))));
        let (outcome, cause) = match self.fetcher.send(request, ANSWER).await {
            Ok(answer) if answer.status().is_success() => (Outcome::Told, String::new()),
            Ok(answer) => (of_status(answer.status()), format!("it answers {}", answer.status())),
            // It was heard, and whatever a collector says besides does not matter.
            Err(FetchError::TooLarge(_)) => (Outcome::Told, String::new()),
            Err(error) => (Outcome::Later, error.to_string()),
        };
        let is_heard = outcome == Outcome::Told;
        if !is_heard && self.is_heard {
            tracing::warn!(%address, cause, "the collector cannot be told; trying again, and silent about it until then");
        } else if is_heard && !self.is_heard {
            tracing::info!(%address, "the collector hears again");
        }
        self.is_heard = is_heard;
        outcome
    }
}

/// What a collector that is busy did not take may be told again; what it does not want may not.
fn of_status(status: StatusCode) -> Outcome {
    match status.as_u16() {
        429 | 502 | 503 | 504 => Outcome::Later,
        _ => Outcome::Never,
    }
}
