//! How the streams of a server are obtained.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::processes::Processes;

/// How long a process may take to end, each time it is told to.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether what it has started is still there.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Makes connections to a server's standard input and output. Each call makes a new one; the one before has ended.
pub trait Connector: Send + Sync + 'static {
    /// Starts the server, or attaches to it.
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>>;
}

impl Connector for Box<dyn Connector> {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        (**self).connect()
    }
}

/// The standard streams of a server that runs.
pub struct Streams {
    /// What it reads.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it writes.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Ends the server when the streams are closed, and tells how it ended, if that is known. It holds what has to be kept
    /// for as long as they are used.
    pub ending: BoxFuture<'static, Option<ExitStatus>>,
}

impl fmt::Debug for Streams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Streams")
    }
}

/// Why there are no streams.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// For a person.
    pub message: String,
    /// Whether it is of no use to try again.
    pub is_final: bool,
}

/// A server that is a process of this machine.
#[derive(Debug, Clone, Default)]
pub struct ChildProcess {
    /// The program.
    pub program: OsString,
    /// What it is given.
    pub arguments: Vec<OsString>,
    /// What its environment has besides ours.
    pub environment: BTreeMap<OsString, OsString>,
}

impl Connector for ChildProcess {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        Box::pin(async { self.start() })
    }
}

impl ChildProcess {
    fn start(&self) -> Result<Streams, ConnectError> {
        let fail = |problem: &dyn fmt::Display, is_final: bool| ConnectError {
            message: format!("cannot start {}: {problem}", self.program.display()),
            is_final,
        };
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .envs(&self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // So that what it starts itself can be ended with it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| fail(&error, is_no_program(&error)))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail(&"it has no standard streams", false));
        };
        Ok(Streams { input: Box::new(input), output: Box::new(output), ending: Box::pin(end(child)) })
    }
}

/// Whether there is no program that this machine can start. What is none will not become one.
fn is_no_program(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
        || error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error())
}

/// Ends a process whose input is closed, and all that it has started: they are waited for, then asked, then not asked any
/// more.
async fn end(mut child: Child) -> Option<ExitStatus> {
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    for signal in [Signal::TERM, Signal::KILL] {
        if let Ok(status) = tokio::time::timeout(PATIENCE, gone(&mut child, group)).await {
            return status;
        }
        let told = group.map(|group| kill_process_group(group, signal));
        tracing::debug!(?signal, ?told, "the MCP server does not end");
    }
    tokio::time::timeout(PATIENCE, gone(&mut child, group)).await.unwrap_or_default()
}

/// Waits for the end of a process and of its group, and tells how the process ended.
async fn gone(child: &mut Child, group: Option<Pid>) -> Option<ExitStatus> {
    let status = child.wait().await.ok();
    // Nobody tells when somebody else's children end.
    while group.is_some_and(|group| test_kill_process_group(group).is_ok()) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    status
}

/// Processes of this machine, so many at the same time.
#[derive(Debug)]
pub struct ChildProcesses {
    process: ChildProcess,
    room: Arc<Semaphore>,
}

impl ChildProcesses {
    /// At most so many of a process.
    pub fn new(process: ChildProcess, most: usize) -> Self {
        Self { process, room: Arc::new(Semaphore::new(most)) }
    }
}

impl Processes for ChildProcesses {
    fn take(&self) -> Option<Box<dyn Connector>> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(Box::new(OwnProcess { process: self.process.clone(), _room: room }))
    }
}

/// One of them.
struct OwnProcess {
    process: ChildProcess,
    _room: OwnedSemaphorePermit,
}

impl Connector for OwnProcess {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, ConnectError>> {
        self.process.connect()
    }
}
