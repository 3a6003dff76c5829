//! How a command that serves learns that it is to stop.

use std::io;
use std::time::Duration;

use skep_node::hang_up::HangUp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};

use crate::screen;

/// Requests that come together are one: a terminal asks every process of a job, and so may one that passes it on.
const ONE_REQUEST: Duration = Duration::from_millis(500);
/// Pods get 10 s to end; what has not come to its end a while after that does not get there.
const ORDERLY_LIMIT: Duration = Duration::from_secs(20);

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

    /// Ends pods in an orderly way, unless that takes too long or is asked for again: somebody who asks twice does not
    /// want to wait. What is dropped then is gone at once, pods included.
    pub(crate) async fn orderly(&mut self, end: impl Future<Output = ()>) {
        // A terminal that has gone away is no place to talk to, and tells so more than once.
        screen::say("stopping: pods get up to 10 s to end");
        tokio::select! {
            () = end => {}
            () = asked_again(async || self.signalled().await) => screen::say("stopped at once"),
            () = sleep(ORDERLY_LIMIT) => screen::say("stopped at once: some pods have not ended"),
        }
    }

    /// Ready when somebody asks, and not when the terminal goes away.
    pub(crate) async fn signalled(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Ready when somebody asks once more, and not just once with emphasis.
pub(crate) async fn asked_again(mut asked: impl AsyncFnMut()) {
    let first = Instant::now();
    while first.elapsed() < ONE_REQUEST {
        asked().await;
    }
}
