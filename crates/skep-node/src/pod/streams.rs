//! What goes in and out of a container: into its log, and to whoever is attached.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::container::{Container, Terminal};
use crate::log::{Log, Source};

const CHUNK: usize = 16 * 1024;
/// How many chunks may wait for somebody who is attached, and in the other direction.
const WAITING: usize = 64;
/// Somebody who is attached and does not read for so long is let go, so that the container can go on.
const PATIENCE: Duration = Duration::from_secs(30);

/// The streams of one running container.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) log: Arc<Log>,
    attached: Mutex<Vec<mpsc::Sender<(Source, Bytes)>>>,
    stdin: Mutex<Option<mpsc::Sender<Bytes>>>,
    terminal: Option<Terminal>,
}

/// A place at the streams of a container. Dropping it leaves.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) output: mpsc::Receiver<(Source, Bytes)>,
    /// None when the container has no standard input, or when it has been closed.
    pub(crate) input: Option<mpsc::Sender<Bytes>>,
    pub(crate) terminal: Option<Terminal>,
}

impl Streams {
    /// Takes over the streams of a container. The future ends when the container has closed all of them.
    pub(crate) fn start(
        container: &mut Container,
        log: Arc<Log>,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + use<>) {
        let terminal = container.terminal();
        let stdin = container.take_stdin().map(feed);
        let stdin = stdin.or_else(|| terminal.clone().map(feed));
        let streams = Arc::new(Self { log, attached: Mutex::default(), stdin: Mutex::new(stdin), terminal });
        let out = container.take_stdout();
        let side = container.take_stderr();
        let pumps = {
            let streams = streams.clone();
            async move {
                let terminal = streams.terminal.clone();
                tokio::join!(
                    streams.pump(Source::Output, out),
                    streams.pump(Source::Error, side),
                    streams.pump(Source::Output, terminal),
                );
                streams.attached.lock().clear();
                streams.stdin.lock().take();
                streams.log.close();
            }
        };
        (streams, pumps)
    }

    pub(crate) fn attach(&self) -> Attachment {
        let (sender, output) = mpsc::channel(WAITING);
        self.attached.lock().push(sender);
        Attachment { output, input: self.stdin.lock().clone(), terminal: self.terminal.clone() }
    }

    /// Closes the standard input for good, as a container with `stdinOnce` expects when its first visitor leaves.
    pub(crate) fn close_input(&self) {
        self.stdin.lock().take();
    }

    async fn pump(&self, source: Source, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; CHUNK];
        let mut pending = Vec::new();
        // A terminal reports its end as an error.
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            let chunk = &buffer[..length];
            if let Err(error) = self.log.take(source, &mut pending, chunk) {
                tracing::warn!(%error, log = %self.log.path().display(), "output lost");
            }
            self.pass_on(source, chunk).await;
        }
        if let Err(error) = self.log.finish(source, &mut pending) {
            tracing::warn!(%error, log = %self.log.path().display(), "output lost");
        }
    }

    async fn pass_on(&self, source: Source, chunk: &[u8]) {
        let attached = self.attached.lock().clone();
        if attached.is_empty() {
            return;
        }
        let chunk = Bytes::copy_from_slice(chunk);
        let mut gone = false;
        for visitor in &attached {
            gone |= visitor.send_timeout((source, chunk.clone()), PATIENCE).await.is_err() && {
                self.attached.lock().retain(|other| !other.same_channel(visitor));
                true
            };
        }
        if gone {
            self.attached.lock().retain(|visitor| !visitor.is_closed());
        }
    }
}

/// The way to a standard input; it is closed when all senders are gone.
fn feed(mut input: impl AsyncWrite + Unpin + Send + 'static) -> mpsc::Sender<Bytes> {
    let (sender, mut receiver) = mpsc::channel::<Bytes>(WAITING);
    tokio::spawn(async move {
        while let Some(chunk) = receiver.recv().await {
            // The container has closed it, or has ended: nobody will read any more.
            if input.write_all(&chunk).await.is_err() {
                break;
            }
        }
    });
    sender
}
