//! Work that keeps a processor busy for long, done so that others are served meanwhile.
//!
//! A thread that serves everybody is handed over before such work begins, and only so much of it is under way at once
//! as there are processors.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::available_parallelism;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// What is about fewer bytes than this is done at once: handing over would take longer.
const HEAVY: usize = 256 * 1024;

/// The places for heavy work.
#[derive(Debug)]
pub struct Aside(Semaphore);

impl Default for Aside {
    fn default() -> Self {
        Self(Semaphore::new(available_parallelism().map_or(1, usize::from)))
    }
}

impl Aside {
    /// Does work that is about so many bytes.
    pub async fn run<T>(&self, bytes: usize, work: impl Future<Output = T> + Send) -> T {
        if bytes < HEAVY {
            return work.await;
        }
        // They are never closed; if they were, there would be nobody to wait for.
        let _place = self.0.acquire().await.ok();
        Apart(Box::pin(work)).await
    }
}

/// Does work at once, without keeping those waiting who would be served by this thread.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    // A runtime of one thread has nobody to take over.
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Work of which every stretch is done aside.
struct Apart<'a, T>(Pin<Box<dyn Future<Output = T> + Send + 'a>>);

impl<T> Future for Apart<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        aside(|| self.0.as_mut().poll(context))
    }
}
