//! Sessions at a server, opened for clients that have none.
//!
//! A session belongs to one client, known by its credentials, to what that client can be asked and to what its requests say
//! to the server besides their messages. A client without credentials cannot be told from another one, so that it gets a session for each request. Somebody may want it otherwise:
//! a session for each request of everybody, or one that all share who cannot be told from each other.

mod entries;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use self::entries::{Entries, Entry, Number};
use super::holder::Holder;
use super::http::HttpLine;
use super::line::{Hosts, Lost, NoSession, Seat, Sharing};
use super::server_session::{Opener, ServerSession};
use super::settings::{BackendSessions, EraSettings};
use super::surroundings::Surroundings;
use super::verdict::Eras;
use crate::turns::Turns;

/// How long a session lives at most, and no longer than the credentials that it was opened with. One that is used then
/// ends when it is not.
const OLDEST: Duration = Duration::from_hours(1);
/// Sessions of one client, and of all.
const PER_CLIENT: usize = 8;
const ALL: usize = 256;

/// What a session is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Purpose {
    principal: Holder,
    surroundings: Surroundings,
    /// What the client can be asked: an object.
    capabilities: String,
}

/// All sessions of one proxy.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Who uses a session.
    mode: BackendSessions,
    /// How long one lives that nobody uses, and how long at most.
    idle: Duration,
    oldest: Duration,
    sessions: Mutex<Entries>,
    /// One session at a time is opened for a purpose; the others of that purpose find it open.
    opening: Turns<Purpose>,
    farewells: Mutex<tokio::task::JoinSet<()>>,
}

/// The use of a session. When it is dropped, the session is for the next one, or ends.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Arc<Pool>,
    number: Number,
    session: Arc<ServerSession>,
    /// Whether nobody uses it afterwards.
    is_last: bool,
}

/// The sessions of the client that comes by one line.
#[derive(Debug)]
pub(crate) struct Seats {
    pub(crate) pool: Arc<Pool>,
    pub(crate) eras: Arc<Eras>,
    pub(crate) line: HttpLine,
    /// What opens the sessions.
    pub(crate) opener: Arc<dyn Opener>,
}

impl Hosts for Seats {
    fn seat<'a>(&'a self, capabilities: &'a str, sharing: Sharing) -> BoxFuture<'a, Result<Seat, NoSession>> {
        Box::pin(async move {
            let leased = self.pool.lease(self, capabilities, sharing != Sharing::Shared).await;
            if let Err(NoSession::Refused(_) | NoSession::Lost(Lost::Refused(_))) = &leased {
                // A server of sessions would have agreed.
                self.eras.forget();
            }
            let mut lease = leased?;
            lease.is_last = sharing == Sharing::OnlyOnce;
            let line = lease.session.line(&self.line);
            let agreed = Arc::clone(&lease.session.agreed);
            Ok(Seat { line, agreed, held: Some(lease) })
        })
    }

    fn has_own_sessions(&self) -> bool {
        true
    }
}

impl Pool {
    pub(crate) fn new(settings: &EraSettings) -> Self {
        Self {
            mode: settings.sessions,
            idle: settings.session_idle,
            oldest: OLDEST,
            sessions: Mutex::default(),
            opening: Turns::default(),
            farewells: Mutex::default(),
        }
    }

    /// Whether a session of somebody is for the next request, too.
    fn keeps(&self, principal: &Holder) -> bool {
        match self.mode {
            BackendSessions::PerPrincipal => principal.is_known(),
            BackendSessions::PerRequest => false,
            BackendSessions::Shared => true,
        }
    }

    /// A session for a client. An exclusive one has no other user meanwhile.
    async fn lease(
        self: &Arc<Self>,
        seats: &Seats,
        capabilities: &str,
        is_exclusive: bool,
    ) -> Result<Lease, NoSession> {
        let purpose = Purpose {
            principal: seats.line.holder().clone(),
            surroundings: seats.line.surroundings(),
            capabilities: capabilities.to_owned(),
        };
        let is_exclusive = is_exclusive || !self.keeps(&purpose.principal);
        if let Some(lease) = self.take(&purpose, is_exclusive) {
            return Ok(lease);
        }
        let turn = (!is_exclusive).then(|| self.opening.of(&purpose));
        // Held across the handshake on purpose: whoever waits here finds the session open.
        let _turn = match &turn {
            Some(turn) => Some(turn.come().await),
            None => None,
        };
        if let Some(lease) = self.take(&purpose, is_exclusive) {
            return Ok(lease);
        }
        let place = self.make_room(&purpose.principal)?;
        let session = Arc::new(seats.opener.open(capabilities).await?);
        let now = Instant::now();
        // Never longer than what it was opened with is good, whatever those who use it show then.
        let until = seats.line.end_of_credentials().into_iter().chain([now + self.oldest]).min().unwrap_or(now);
        let opened = Arc::clone(&session);
        let entry = Entry { session: opened, purpose, users: 1, is_exclusive, until, used: now };
        let number = place.arrive(entry);
        Ok(Lease { pool: Arc::clone(self), number, session, is_last: false })
    }

    /// A session that is open already.
    fn take(self: &Arc<Self>, purpose: &Purpose, is_exclusive: bool) -> Option<Lease> {
        if !self.keeps(&purpose.principal) {
            return None;
        }
        let (number, session) = self.sessions.lock().take(purpose, is_exclusive)?;
        Some(Lease { pool: Arc::clone(self), number, session, is_last: false })
    }

    /// A place for a session that is to be opened. Ends sessions that nobody uses, if there are too many.
    fn make_room(&self, principal: &Holder) -> Result<Coming<'_>, NoSession> {
        let mut gone = Vec::new();
        let made = self.sessions.lock().make_room(principal, &mut gone);
        for session in gone {
            self.end(session);
        }
        made.map(|()| Coming { pool: self, principal: Some(principal.clone()) })
    }

    /// Ends the sessions that were not used for too long.
    pub(crate) fn sweep(&self) {
        let over = self.sessions.lock().sweep(self.idle);
        for entry in over {
            self.end(entry.session);
        }
    }

    /// Ends all sessions, and waits until the server was told.
    pub(crate) async fn close(&self) {
        let all = self.sessions.lock().clear();
        for entry in all {
            self.end(entry.session);
        }
        let mut farewells = std::mem::take(&mut *self.farewells.lock());
        while farewells.join_next().await.is_some() {}
    }

    fn end(&self, session: Arc<ServerSession>) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let mut farewells = self.farewells.lock();
            while farewells.try_join_next().is_some() {}
            farewells.spawn_on(async move { session.end().await }, &runtime);
        }
    }
}

/// The place of a session that is being opened. When it is open it has a place of its own.
struct Coming<'a> {
    pool: &'a Pool,
    principal: Option<Holder>,
}

impl Coming<'_> {
    /// The session is open.
    fn arrive(mut self, entry: Entry) -> Number {
        let mut sessions = self.pool.sessions.lock();
        if let Some(principal) = self.principal.take() {
            sessions.leave_room(&principal);
        }
        sessions.insert(entry)
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        if let Some(principal) = self.principal.take() {
            self.pool.sessions.lock().leave_room(&principal);
        }
    }
}

impl Lease {
    /// The server does not know the session any more.
    pub(crate) fn lost(self) {
        self.pool.sessions.lock().remove(self.number);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut sessions = self.pool.sessions.lock();
        let Some(entry) = sessions.release(self.number) else { return };
        let is_over = self.is_last || !self.pool.keeps(&entry.purpose.principal) || Instant::now() >= entry.until;
        if entry.users == 0 && is_over {
            let ended = sessions.remove(self.number);
            drop(sessions);
            if let Some(entry) = ended {
                self.pool.end(entry.session);
            }
        }
    }
}

#[cfg(test)]
mod tests;
