//! The demo MCP server: small, without a network behind it, and fluent in every revision of the protocol.
//!
//! It is what `skep up` runs when it is given nothing else, and what the proxy is tested with. It has wire code of its
//! own on purpose: a server made of the proxy's parts would share the proxy's mistakes.

mod batch;
mod call;
mod changes;
mod completion;
mod era;
mod events;
mod http;
mod limits;
mod listen;
mod log_level;
mod media;
mod message;
mod methods;
mod outbox;
mod prompts;
mod question;
mod resources;
mod revision;
mod running;
mod seal;
mod session;
mod sessions;
mod stdio;
mod tools;

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;
use tokio::fs::File;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::changes::Changes;
pub use self::http::HttpTransport;
pub use self::revision::Spoken;
use self::seal::Seal;

/// What all clients share.
#[derive(Debug)]
pub(crate) struct Demo {
    spoken: Spoken,
    changes: Changes,
    seal: Seal,
    /// Whether the tool that comes and goes is there.
    extra_tool: AtomicBool,
    /// Whether the prompt that comes and goes is there.
    extra_prompt: AtomicBool,
    /// Whether the resource that comes and goes is there.
    extra_resource: AtomicBool,
    /// The content of the resource that can be watched.
    counter: AtomicU64,
    stop: CancellationToken,
    tasks: Mutex<JoinSet<()>>,
}

impl Demo {
    fn new(spoken: Spoken, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            spoken,
            changes: Changes::default(),
            seal: Seal::new(),
            extra_tool: AtomicBool::default(),
            extra_prompt: AtomicBool::default(),
            extra_resource: AtomicBool::default(),
            counter: AtomicU64::default(),
            stop,
            tasks: Mutex::default(),
        })
    }

    /// Runs a task that ends by itself when the server stops.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Waits for the tasks, though not for ever.
    async fn finish(&self) {
        self.stop.cancel();
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        let all = async { while tasks.join_next().await.is_some() {} };
        // What does not end in time is ended with the set.
        let _ = tokio::time::timeout(limits::STOP_GRACE, all).await;
    }
}

/// Serves the process's standard input and output until the input ends or `stop` is cancelled.
pub async fn serve_stdio(spoken: Spoken, stop: CancellationToken) -> io::Result<()> {
    let demo = Demo::new(spoken, stop);
    let input = File::from_std(io::stdin().as_fd().try_clone_to_owned()?.into());
    let output = File::from_std(io::stdout().as_fd().try_clone_to_owned()?.into());
    let result = stdio::serve(&demo, input, output).await;
    demo.finish().await;
    result
}

/// Serves HTTP until `stop` is cancelled.
pub async fn serve_http(
    spoken: Spoken,
    transport: HttpTransport,
    listener: TcpListener,
    stop: CancellationToken,
) -> io::Result<()> {
    let demo = Demo::new(spoken, stop);
    let result = http::serve(&demo, transport, listener).await;
    demo.finish().await;
    result
}
