//! The standard streams of the pods that run a server.

use std::ops::Range;
use std::sync::Arc;

use futures::future::BoxFuture;
use skep_operator::runner::{Attachment, Backend, Proxy};
use skep_proxy::stdio::{ConnectError, Connector, Processes, Streams};
use skep_proxy::{Readiness, State};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Waits while somebody wants no pods, and says so.
pub(super) async fn wanted(backend: &Backend, readiness: &Readiness) {
    if backend.is_scaled_to_zero().await {
        readiness.set(State::Waiting("the MCP server is scaled to zero".into()));
        backend.wanted().await;
        readiness.set(State::Waiting("the MCP server is starting".into()));
    }
}

/// The streams of whatever pod runs the server, or of one of them.
#[derive(Debug, Clone)]
pub(super) struct PodStreams {
    pub(super) backend: Backend,
    pub(super) attachment: Attachment,
    /// Cancelled when the server is what it should be.
    pub(super) deployed: CancellationToken,
    pub(super) readiness: Readiness,
}

impl PodStreams {
    /// The streams of one pod, whose process is another one each time.
    pub(super) fn to_pod(&self, ordinal: i32) -> Self {
        Self { attachment: self.attachment.to_pod(ordinal), ..self.clone() }
    }
}

impl Connector for PodStreams {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        Box::pin(async {
            self.deployed.cancelled().await;
            wanted(&self.backend, &self.readiness).await;
            match self.attachment.open().await {
                Ok(attached) => {
                    tracing::info!(pod = attached.pod, "attached to the MCP server");
                    let (input, output) = (attached.input, attached.output);
                    let process = attached.process;
                    Ok(Streams {
                        input,
                        output,
                        ending: Box::pin(async move {
                            drop(process);
                            None
                        }),
                    })
                }
                // It has tried for long.
                Err(error) => Err(ConnectError { message: error.to_string(), is_final: true }),
            }
        })
    }
}

/// Pods that are for one session each. Other proxies may take some of them.
pub(super) struct OwnPods {
    streams: PodStreams,
    room: Arc<Semaphore>,
}

impl OwnPods {
    /// The pods with these ordinals, for sessions of this proxy.
    pub(super) fn new(streams: &PodStreams, ordinals: Range<i32>, proxy: Proxy) -> Self {
        let room = Arc::new(Semaphore::new(ordinals.len()));
        let attachment = streams.attachment.for_sessions(ordinals, proxy);
        Self { streams: PodStreams { attachment, ..streams.clone() }, room }
    }
}

impl Processes for OwnPods {
    fn take(&self) -> Option<Box<dyn Connector>> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(Box::new(OwnPod { streams: self.streams.clone(), _room: room }))
    }
}

/// One of them, whichever it is when it is connected to. There is room for another one when it is dropped.
struct OwnPod {
    streams: PodStreams,
    _room: OwnedSemaphorePermit,
}

impl Connector for OwnPod {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        self.streams.connect()
    }
}
