//! The sessions of all clients of an HTTP transport, by their ids.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::limits;
use super::session::Session;

/// The sessions. Those that are not used end.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// Adds a session under a new id that nobody can guess.
    pub(crate) fn add(&self, session: Arc<Session>) -> String {
        let id = Uuid::new_v4().to_string();
        let mut sessions = self.0.lock();
        if sessions.len() >= limits::SESSIONS {
            let idlest = sessions.iter().max_by_key(|(_, session)| session.idle()).map(|(id, _)| id.clone());
            if let Some(session) = idlest.and_then(|id| sessions.remove(&id)) {
                session.ended.cancel();
            }
        }
        sessions.insert(id.clone(), session);
        id
    }

    /// The session of that id, which counts as use.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.0.lock().get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session, if there is one of that id.
    pub(crate) fn end(&self, id: &str) -> bool {
        let session = self.0.lock().remove(id);
        session.inspect(|session| session.ended.cancel()).is_some()
    }

    fn end_idle(&self) {
        self.0.lock().retain(|_, session| {
            let is_used = session.idle() < limits::SESSION_IDLE;
            if !is_used {
                session.ended.cancel();
            }
            is_used
        });
    }

    /// Ends idle sessions until the server stops.
    pub(crate) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = tokio::time::sleep(limits::SESSION_IDLE / 30) => self.end_idle(),
                () = stop.cancelled() => {}
            }
        }
    }
}
