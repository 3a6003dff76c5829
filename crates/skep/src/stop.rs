//! How a command that serves learns that it is to stop.

use std::io;

use skep_node::hang_up::HangUp;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::screen;

/// Requests to stop, from the moment that this exists.
#[derive(Debug)]
pub(crate) struct Stop {
    terminate: Signal,
    interrupt: Signal,
    hang_up: HangUp,
}

impl Stop {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: HangUp::new()?,
        })
    }

    /// Ready when the process is asked to stop, once for every time, or when its terminal goes away.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = self.hang_up.received() => {}
        }
    }

    /// Ends pods in an orderly way, unless it is asked for again: somebody who asks twice does not want to wait. What is
    /// dropped then is gone at once, pods included.
    pub(crate) async fn orderly(&mut self, end: impl Future<Output = ()>) {
        // A terminal that has gone away is no place to talk to, and tells so more than once.
        screen::say("stopping: pods get up to 10 s to end");
        tokio::select! {
            () = end => {}
            _ = self.terminate.recv() => screen::say("stopped at once"),
            _ = self.interrupt.recv() => screen::say("stopped at once"),
        }
    }
}
