//! The sessions of a bridge, from their beginning to whatever is let go of with them.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use skep_mcp::{Revision, method};

use super::audience::Audience;
use super::bridge::Bridge;
use super::clients::Client;
use crate::eras::legacy_client::{self, LegacyClient};
use crate::sessions::{Kind, Owner, Session, Unavailable};

impl Bridge {
    /// Begins a session.
    pub(super) async fn open_session(
        &self,
        revision: Revision,
        kind: Kind,
        owner: Owner<'_>,
    ) -> Result<Arc<Client>, Unavailable> {
        self.begin_session(new_session(kind, revision, owner)).await
    }

    /// Begins a session for a client that is older than the process, and can be asked this.
    pub(super) async fn open_bridged_session(
        &self,
        revision: Revision,
        capabilities: &str,
        owner: Owner<'_>,
    ) -> Result<Arc<Client>, Unavailable> {
        let mut session = new_session(Kind::Streamable, revision, owner);
        legacy_client::mark(&mut session, capabilities);
        let client = self.begin_session(session).await?;
        self.keep_legacy_client(LegacyClient::new(Arc::clone(&client), revision, capabilities));
        Ok(client)
    }

    async fn begin_session(&self, session: Session) -> Result<Arc<Client>, Unavailable> {
        let (id, revision, kind) = (Arc::clone(&session.id), session.revision(), session.kind);
        if let Some(ended) = self.sessions.create(session, |id| self.clients().is_open(id)).await? {
            self.leave(&ended);
        }
        Ok(self.clients().open(&id, revision, kind == Kind::Streamable))
    }

    /// Somebody who hears what belongs to no request without having a session. It is for one stream, and ends with that.
    pub(super) fn open_listener(&self) -> Arc<Client> {
        self.clients().open_listener(&uuid::Uuid::new_v4().to_string().into())
    }

    /// A session of a caller that is alive, which counts as used now.
    pub(super) async fn session(&self, id: &str, who: Owner<'_>) -> Result<Option<Arc<Client>>, Unavailable> {
        let Some(session) = self.sessions.find(id, who).await? else { return Ok(None) };
        let held = self.clients().get(id);
        // One that is not held began in another process.
        let client = held.unwrap_or_else(|| self.clients().open(&session.id, session.revision(), true));
        if legacy_client::is_marked(&session) {
            let mut older = self.legacy_clients.lock();
            older.entry(Arc::clone(&session.id)).or_insert_with(|| LegacyClient::of(&session, Arc::clone(&client)));
        }
        Ok(Some(client))
    }

    /// Whether a caller has such a session, and what this process holds for it.
    pub(super) async fn held_session(
        &self,
        id: &str,
        who: Owner<'_>,
    ) -> Result<Option<Option<Arc<Client>>>, Unavailable> {
        Ok(self.sessions.find(id, who).await?.map(|_| self.clients().get(id)))
    }

    /// Ends a session of a caller, and tells whether there was one.
    pub(super) async fn close_session(&self, id: &str, who: Owner<'_>) -> Result<bool, Unavailable> {
        let was_there = self.sessions.find(id, who).await?.is_some() && self.sessions.delete(id).await?;
        if was_there {
            self.leave(id);
        }
        Ok(was_there)
    }

    /// Ends a session whose client has gone.
    pub(super) fn abandon_session(&self, id: &Arc<str>) {
        self.sessions.discard(id);
        self.leave(id);
    }

    /// Ends what was opened for somebody who has no session.
    pub(super) fn close_listener(&self, id: &str) {
        self.leave(id);
    }

    /// Ends the sessions that were not used for too long, and forgets answers that nobody came back for. One that listens is used. What the store does not tell now, it
    /// tells the next time.
    pub(super) async fn sweep_sessions(&self, now: Instant) -> Result<(), Unavailable> {
        self.clients().forget_ended(now);
        for id in self.clients().listening() {
            self.sessions.get(&id).await?;
        }
        self.sessions.sweep();
        for id in self.clients().ids() {
            if !self.sessions.contains(&id).await? {
                self.leave(&id);
            }
        }
        Ok(())
    }

    /// Lets go of everything that this process holds for a session.
    fn leave(&self, id: &str) {
        let client = self.clients().remove(id);
        // Whoever waits is told before the streams end.
        self.calls().leave(id);
        if let Some(client) = client {
            client.close();
        }
        self.forget(id);
    }

    /// The server need not do any more what it did for a session that has ended.
    fn forget(&self, session: &str) {
        if self.audience() == Audience::OneSession {
            self.over().cancel();
        }
        if let Some(client) = self.legacy_clients.lock().remove(session) {
            client.close();
        }
        self.subscriptions().forget(session, |uri| self.tell_unsubscribed(uri));
        if let Some(level) = self.log_levels().forget(session) {
            self.tell(method::SET_LOG_LEVEL, &json!({"level": level}));
        }
    }
}

fn new_session(kind: Kind, revision: Revision, owner: Owner<'_>) -> Session {
    Session::new(&uuid::Uuid::new_v4().to_string(), kind, revision, owner.caller).at(owner.address)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::limits::{Limits, RESUMABLE};
    use crate::readiness::Readiness;
    use crate::stdio::events::End;

    #[tokio::test]
    async fn answers_that_nobody_comes_back_for_are_forgotten_in_a_session_that_does_nothing_more() {
        let bridge = Bridge::new(Limits::default(), Readiness::default());
        let client = bridge.open_session(Revision::November2025, Kind::Streamable, Owner::default()).await.unwrap();
        let stream = client.stream();
        client.remember(&stream);
        stream.end(Some(Bytes::from_static(b"{}")), End::Answered);
        let begun = Instant::now();
        let held = Arc::downgrade(&stream);
        drop(stream);
        bridge.sweep_sessions(begun).await.unwrap();
        assert!(held.upgrade().is_some(), "the client may come back");
        bridge.sweep_sessions(begun + RESUMABLE).await.unwrap();
        assert!(held.upgrade().is_none());
    }
}
