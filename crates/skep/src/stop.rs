//! How a command that serves learns that it is to stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Ready when the process is asked to stop.
pub(crate) fn asked() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
