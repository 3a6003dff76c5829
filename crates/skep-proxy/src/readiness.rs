//! Whether the server behind the proxy can be reached.

use std::sync::Arc;

use tokio::sync::watch;

/// What is known about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It cannot be reached yet, or not at the moment, for this reason.
    Waiting(Arc<str>),
    /// It can be reached.
    Ready,
}

/// Tells everybody when the state changes.
#[derive(Debug, Clone)]
pub struct Readiness(Arc<watch::Sender<State>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::Waiting("the MCP server is starting".into()))))
    }
}

impl Readiness {
    /// The state now.
    pub fn state(&self) -> State {
        self.0.borrow().clone()
    }

    /// From now on it is this.
    pub fn set(&self, state: State) {
        self.0.send_if_modified(|known| {
            let is_new = *known != state;
            *known = state;
            is_new
        });
    }

    /// Waits until the server can be reached.
    pub async fn ready(&self) {
        // The sender is in our hands, so that it cannot go away.
        let _ = self.0.subscribe().wait_for(|state| *state == State::Ready).await;
    }

    /// Why a request cannot be served now.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        match &*self.0.borrow() {
            State::Ready => None,
            State::Waiting(reason) => Some(Arc::clone(reason)),
        }
    }
}
