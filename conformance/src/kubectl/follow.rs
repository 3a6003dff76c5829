//! Commands that run beside the script, such as `kubectl get --watch`.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use regex::Regex;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

const POLL: Duration = Duration::from_millis(20);

/// A command under way, and what it has printed. Dropping it ends the command.
pub(super) struct Following {
    _child: Child,
    output: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Following {
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let output = Arc::default();
        let reader = tokio::spawn(collect(child.stdout.take(), Arc::clone(&output)));
        Ok(Self { _child: child, output, reader })
    }

    pub(super) fn output(&self) -> String {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&output).into_owned()
    }

    /// Waits until the output matches; the caller sets the limit.
    pub(super) async fn until(&self, pattern: &Regex) {
        while !pattern.is_match(&self.output()) {
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn collect(stdout: Option<ChildStdout>, output: Arc<Mutex<Vec<u8>>>) {
    let Some(mut stdout) = stdout else { return };
    let mut buffer = [0; 4096];
    // An error is the end of the output, too.
    while let Ok(length @ 1..) = stdout.read(&mut buffer).await {
        output.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..length]);
    }
}
