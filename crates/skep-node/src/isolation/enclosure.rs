//! The namespaces in which everything runs, and the process that waits outside.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;

use rustix::stdio::{stderr, stdin, stdout};
use tokio::signal::unix::{SignalKind, signal};

use super::Refusal;
use super::refusal;
use crate::broker;
use crate::channel::{AsyncChannel, Channel};
use crate::container::{Capabilities, Exit, Identity, Init, Place, Program, Root, StartError, World};
use crate::hang_up::HangUp;
use crate::sys::Namespaces;

/// Why the program could not be started inside.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("cannot start the program inside the namespaces")]
    Start(#[source] StartError),
    #[error("cannot wait outside of the namespaces")]
    Wait(#[source] io::Error),
}

/// Runs this program again with `arguments`, inside namespaces of its own, and serves as its broker until it ends.
///
/// SIGINT, SIGTERM, SIGHUP and SIGWINCH are passed on to it, once each: it is not in the process group of the terminal.
/// When this process dies, however it dies, so does everything inside.
pub async fn run_inside(arguments: Vec<OsString>) -> Result<Exit, EnterError> {
    refusal::probe()?;
    let (ours, theirs) = Channel::pair().map_err(EnterError::Wait)?;
    let program = program(arguments, &theirs).map_err(EnterError::Wait)?;
    let world = World { root: Root::Machine, hostname: None, network: false };
    let descriptors = [stdin(), stdout(), stderr(), theirs.as_fd()];
    let mut signals = Signals::new().map_err(EnterError::Wait)?;
    let (init, inner) =
        Init::launch(Namespaces::User, world, Some(program), &descriptors).await.map_err(EnterError::Start)?;
    drop(theirs);
    let channel = AsyncChannel::new(ours).map_err(EnterError::Wait)?;
    let serving = broker::serve(channel, Some(init.pid()));
    tokio::pin!(serving);
    let mut served = false;
    loop {
        tokio::select! {
            exit = inner.ending.wait() => return Ok(exit),
            number = signals.next() => init.signal(inner.id, number),
            () = &mut serving, if !served => served = true,
        }
    }
}

/// Whether this process was started by [`run_inside`].
pub fn is_inside() -> bool {
    broker::inherited().is_some()
}

fn program(arguments: Vec<OsString>, channel: &Channel) -> io::Result<Program> {
    // The helper that starts it is the same program, whatever has become of its file by then.
    let argv = std::iter::once("/proc/self/exe".into()).chain(arguments).collect();
    let mut env: Vec<_> = std::env::vars_os().filter(|(name, _)| name != broker::CHANNEL_VARIABLE).collect();
    env.push((broker::CHANNEL_VARIABLE.into(), broker::announcement(channel)?.into()));
    let (identity, capabilities) = (Identity::default(), Capabilities::default());
    Ok(Program { argv, env, working_dir: None, identity, capabilities, place: Place::Enclosure, tty: false })
}

/// The signals that are passed on.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: HangUp,
    window_change: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: HangUp::new()?,
            window_change: signal(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => libc::SIGINT,
            _ = self.terminate.recv() => libc::SIGTERM,
            () = self.hang_up.received() => libc::SIGHUP,
            _ = self.window_change.recv() => libc::SIGWINCH,
        }
    }
}
