//! The end of a server, and of the bridge to it.

use std::process::ExitStatus;
use std::time::Duration;

use futures::future::BoxFuture;
use skep_mcp::fault::{Fault, INTERNAL_ERROR};
use tokio::runtime::Handle;

use super::Bridge;
use crate::readiness::State;

/// How often it is looked whether all requests are answered, when the proxy stops.
const DRAIN_CHECK: Duration = Duration::from_millis(20);

impl Bridge {
    /// The server is gone, and with it everything that it was asked.
    pub(in crate::stdio) fn lose(&self) {
        self.readiness.set(State::Waiting("the MCP server is starting again".into()));
        // The next one may be of another era.
        self.eras.forget();
        self.fail_calls();
    }

    /// Tells everybody who waits for an answer that there will be none.
    pub(in crate::stdio) fn fail_calls(&self) {
        let told = "the MCP server went away; whether it did what was asked is unknown";
        self.calls.lose(&Fault::new(INTERNAL_ERROR, told));
    }

    /// Ends a server whose streams are closed, whoever waits for that.
    pub(in crate::stdio) fn end_server(&self, ending: BoxFuture<'static, Option<ExitStatus>>) {
        // Without a runtime this process is about to end, and whatever is held ends with it.
        if let Ok(runtime) = Handle::try_current() {
            self.endings.lock().spawn_on(ending, &runtime);
        }
    }

    /// Waits for the end of servers whose streams are closed, and tells how the last one ended, if that is known.
    pub(in crate::stdio) async fn await_endings(&self) -> Option<ExitStatus> {
        let mut last = None;
        // They stay where they are, so that they go on when nobody waits any more.
        while let Some(ended) = std::future::poll_fn(|context| self.endings.lock().poll_join_next(context)).await {
            last = ended.ok().flatten();
        }
        last
    }

    /// Ends the sessions that have processes of their own, with time for what is under way in them.
    pub(in crate::stdio) async fn end_own_processes(&self) {
        if let Some(pool) = &self.pool {
            pool.end().await;
        }
    }

    /// Waits for the requests that are under way, though not for ever. Streams whose end nobody awaits end with the proxy.
    pub(in crate::stdio) async fn drain(&self) {
        // Whoever has not got an answer by then is told so before the connection is cut.
        let patience = self.limits.drain / 5 * 4;
        let answered = async {
            // Whoever is gone is called off at the server a moment later, so that one look is not enough.
            let mut looks = 0;
            while looks < 2 {
                looks = if self.calls.is_quiet() { looks + 1 } else { 0 };
                tokio::time::sleep(DRAIN_CHECK).await;
            }
        };
        let _ = tokio::time::timeout(patience, answered).await;
    }

    /// Ends everything.
    pub(in crate::stdio) fn close(&self) {
        self.readiness.set(State::Waiting("the proxy is stopping".into()));
        self.calls.close();
        for (_, client) in self.legacy_clients.lock().drain() {
            client.close();
        }
        self.clients.close_all();
    }
}
