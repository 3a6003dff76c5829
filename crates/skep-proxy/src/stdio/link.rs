//! The connection to the server, made again when it breaks.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use futures::future::BoxFuture;
use skep_mcp::lines::LineSplitter;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::bridge::Bridge;
use super::calls::Expired;
use super::connect::{ConnectError, Connector, Streams};
use super::outbox::Queued;
use crate::budget::SMALL;
use crate::limits;
use crate::readiness::State;

/// How often in a row a connection may fail before we give up.
const ATTEMPTS: u32 = 10;
/// How long to wait after the first failure; twice as long after each one that follows.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that lasted so long was no failure. Nor was one on which a client was answered.
const STEADY: Duration = Duration::from_mins(1);
/// How long a server that has closed its input may go on to say something.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often requests that wait too long are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// How often sessions that have ended are looked for, at least.
const SWEEP_SESSIONS: Duration = Duration::from_mins(1);

/// Why the server is given up.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It cannot be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// It ends again and again, the last time like this.
    #[error("the MCP server ended {ATTEMPTS} times in a row before it answered anything{0}")]
    Unstable(String),
}

impl Bridge {
    /// Keeps the server connected until `stop` is cancelled or it is of no use to try any more.
    pub async fn run(self: Arc<Self>, connector: impl Connector, stop: CancellationToken) -> Result<(), LinkError> {
        let Some(mut outgoing) = self.take_outgoing() else { return Ok(()) };
        let working = async {
            tokio::select! {
                result = self.keep_connected(&connector, &mut outgoing) => result,
                () = self.sweep() => Ok(()),
            }
        };
        let result = {
            tokio::pin!(working);
            tokio::select! {
                result = &mut working => result,
                () = stop.cancelled() => {
                    let drained = async { tokio::join!(self.drain(), self.end_own_processes()) };
                    tokio::select! {
                        result = &mut working => result,
                        _ = drained => Ok(()),
                    }
                }
            }
        };
        self.end_own_processes().await;
        self.close();
        self.await_endings().await;
        result
    }

    async fn keep_connected(
        self: &Arc<Self>,
        connector: &impl Connector,
        outgoing: &mut mpsc::Receiver<Queued>,
    ) -> Result<(), LinkError> {
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            let mut problem = None;
            match connector.connect().await {
                Ok(streams) => self.converse(streams, outgoing).await,
                Err(error) if error.is_final => return Err(error.into()),
                Err(error) => problem = Some(error),
            }
            self.lose();
            let how = self.await_endings().await.map(|status| format!(" ({status})")).unwrap_or_default();
            let has_served = self.calls().has_served();
            failures = if has_served || begun.elapsed() > STEADY { 0 } else { failures + 1 };
            if failures >= ATTEMPTS {
                return Err(problem.map_or(LinkError::Unstable(how), LinkError::Connect));
            }
            let reason = problem.map_or_else(|| format!("the MCP server ended{how}"), |error| error.to_string());
            tracing::warn!(reason, failures, "connecting to the MCP server again");
            self.readiness().set(State::Waiting(reason.into()));
            let pause = FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1));
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
            // What was meant for the server that is gone is not for its successor.
            while outgoing.try_recv().is_ok() {}
            // Somebody may have asked who saw the server shortly before it was gone.
            self.fail_calls();
        }
    }

    /// Talks to the server until it is gone.
    async fn converse(self: &Arc<Self>, streams: Streams, outgoing: &mut mpsc::Receiver<Queued>) {
        // Dropped after the streams, when this is over and also when it is given up.
        let _ending = Ending { bridge: self, server: Some(streams.ending) };
        let (mut input, mut output) = (streams.input, streams.output);
        let greeting = async {
            // A server that takes the place of another has to know what that one knew.
            self.renew().await;
            self.readiness().set(State::Ready);
            std::future::pending::<()>().await;
        };
        let reading = self.read(&mut output);
        tokio::pin!(reading);
        tokio::select! {
            () = &mut reading => {}
            // One that reads no more may still have answers to give.
            () = write(&mut input, outgoing) => drop(tokio::time::timeout(LAST_WORDS, reading).await),
            () = greeting => {}
        }
    }

    async fn read(&self, output: &mut (impl AsyncRead + Unpin)) {
        let mut lines = LineSplitter::new(self.limits().line_bytes);
        loop {
            match output.read_buf(lines.buffer()).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {
                    while let Some(line) = lines.next_line() {
                        self.receive(line);
                    }
                }
            }
        }
        if let Some(line) = lines.finish() {
            self.receive(line);
        }
    }

    async fn sweep(&self) {
        let calls = async {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Expired { numbers: expired, handshakes } = self.calls().expire(Instant::now());
                self.oddities().kept_silent(expired.len(), handshakes, self.limits().request);
                // A server that hangs reads nothing, and meanwhile others are late.
                let _ = tokio::time::timeout(SWEEP, self.calls().call_off(expired)).await;
            }
        };
        // Asking a store about sessions may take long, and requests must not wait for that to find out that they are late.
        let sessions = async {
            loop {
                tokio::time::sleep(SWEEP_SESSIONS.min(self.limits().session / 2)).await;
                if self.sweep_sessions(Instant::now()).await.is_err() {
                    tracing::debug!("sessions that have ended are kept until the store can be asked");
                }
            }
        };
        tokio::select! {
            () = calls => {}
            () = sessions => {}
        }
    }
}

/// Ends the server with the conversation.
struct Ending<'a> {
    bridge: &'a Bridge,
    server: Option<BoxFuture<'static, Option<ExitStatus>>>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.bridge.end_server(server);
        }
    }
}

/// Writes messages, as many at a time as there are, until that is of no use any more.
async fn write(input: &mut (impl AsyncWrite + Unpin), outgoing: &mut mpsc::Receiver<Queued>) {
    let mut messages = Vec::new();
    let mut lines = BytesMut::new();
    while outgoing.recv_many(&mut messages, limits::QUEUED_MESSAGES).await > 0 {
        let written = async {
            for queued in messages.drain(..) {
                if queued.line.len() > SMALL {
                    // It keeps its room while it is written, and is not copied for that.
                    input.write_all_buf(&mut lines).await?;
                    input.write_all(&queued.line).await?;
                } else {
                    lines.extend_from_slice(&queued.line);
                }
                lines.extend_from_slice(b"\n");
            }
            input.write_all_buf(&mut lines).await?;
            input.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}
