//! Sessions at a server, opened for clients that have none.
//!
//! A session belongs to one client, known by its credentials, and to what that client can be asked. A client without
//! credentials cannot be told from another one, so that it gets a session for each request. Somebody may want it otherwise:
//! a session for each request of everybody, or one that all share who cannot be told from each other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::holder::Holder;
use super::http::HttpLine;
use super::line::{Hosts, Lost, NoSession, Seat, Sharing};
use super::server_session::{Opener, ServerSession};
use super::settings::{BackendSessions, EraSettings};
use super::verdict::Eras;

/// How long a session lives at most. One that is used then ends when it is not.
const OLDEST: Duration = Duration::from_hours(1);
/// Sessions of one client, and of all.
const PER_CLIENT: usize = 8;
const ALL: usize = 256;

/// What a session is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Purpose {
    principal: Holder,
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
    sessions: Mutex<Vec<Entry>>,
    /// Whose sessions are being opened. They have their places already. Locked after the sessions.
    coming: Mutex<Vec<Holder>>,
    /// One session at a time is opened for a purpose; the others of that purpose find it open.
    opening: Mutex<HashMap<Purpose, Arc<tokio::sync::Mutex<()>>>>,
    farewells: Mutex<tokio::task::JoinSet<()>>,
}

#[derive(Debug)]
struct Entry {
    session: Arc<ServerSession>,
    purpose: Purpose,
    users: usize,
    /// Whether the one user does not share it.
    is_exclusive: bool,
    opened: Instant,
    used: Instant,
}

/// The use of a session. When it is dropped, the session is for the next one, or ends.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Arc<Pool>,
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
            coming: Mutex::default(),
            opening: Mutex::default(),
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
        let purpose = Purpose { principal: seats.line.holder(), capabilities: capabilities.to_owned() };
        let is_exclusive = is_exclusive || !self.keeps(&purpose.principal);
        if let Some(lease) = self.take(&purpose, is_exclusive) {
            return Ok(lease);
        }
        let turn = {
            let mut opening = self.opening.lock();
            opening.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(opening.entry(purpose.clone()).or_default())
        };
        // Held across the handshake on purpose: whoever waits here finds the session open.
        let _turn = if is_exclusive { None } else { Some(turn.lock().await) };
        if let Some(lease) = self.take(&purpose, is_exclusive) {
            return Ok(lease);
        }
        let _place = self.make_room(&purpose.principal)?;
        let session = Arc::new(seats.opener.open(capabilities).await?);
        let now = Instant::now();
        let lease = Lease { pool: Arc::clone(self), session: Arc::clone(&session), is_last: false };
        self.sessions.lock().push(Entry { session, purpose, users: 1, is_exclusive, opened: now, used: now });
        Ok(lease)
    }

    /// A session that is open already.
    fn take(self: &Arc<Self>, purpose: &Purpose, is_exclusive: bool) -> Option<Lease> {
        let mut sessions = self.sessions.lock();
        let is_free =
            |entry: &Entry| if is_exclusive { entry.users == 0 } else { entry.users == 0 || !entry.is_exclusive };
        let entry = sessions.iter_mut().find(|entry| {
            entry.purpose == *purpose
                && self.keeps(&purpose.principal)
                && entry.opened.elapsed() < self.oldest
                && is_free(entry)
        })?;
        entry.users += 1;
        entry.is_exclusive = is_exclusive;
        Some(Lease { pool: Arc::clone(self), session: Arc::clone(&entry.session), is_last: false })
    }

    /// A place for a session that is to be opened. Ends sessions that nobody uses, if there are too many.
    fn make_room(&self, principal: &Holder) -> Result<Coming<'_>, NoSession> {
        let mut sessions = self.sessions.lock();
        let mut coming = self.coming.lock();
        let own = |entry: &Entry| entry.purpose.principal == *principal && principal.is_known();
        let own_coming = coming.iter().filter(|holder| *holder == principal && principal.is_known()).count();
        loop {
            let is_own_full = sessions.iter().filter(|entry| own(entry)).count() + own_coming >= PER_CLIENT;
            if !is_own_full && sessions.len() + coming.len() < ALL {
                break;
            }
            let unused =
                sessions.iter().enumerate().filter(|(_, entry)| entry.users == 0 && (!is_own_full || own(entry)));
            let Some((index, _)) = unused.min_by_key(|(_, entry)| entry.used) else { return Err(NoSession::Full) };
            let entry = sessions.swap_remove(index);
            self.end(entry.session);
        }
        coming.push(principal.clone());
        Ok(Coming { pool: self, principal: principal.clone() })
    }

    /// Ends the sessions that were not used for too long.
    pub(crate) fn sweep(&self) {
        let mut sessions = self.sessions.lock();
        let is_over = |entry: &Entry| {
            entry.users == 0 && (entry.used.elapsed() > self.idle || entry.opened.elapsed() > self.oldest)
        };
        let (over, kept) = std::mem::take(&mut *sessions).into_iter().partition(is_over);
        *sessions = kept;
        drop(sessions);
        let over: Vec<Entry> = over;
        for entry in over {
            self.end(entry.session);
        }
    }

    /// Ends all sessions, and waits until the server was told.
    pub(crate) async fn close(&self) {
        for entry in std::mem::take(&mut *self.sessions.lock()) {
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
    principal: Holder,
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        let mut coming = self.pool.coming.lock();
        if let Some(place) = coming.iter().position(|holder| *holder == self.principal) {
            coming.swap_remove(place);
        }
    }
}

impl Lease {
    /// The server does not know the session any more.
    pub(crate) fn lost(self) {
        self.pool.sessions.lock().retain(|entry| !Arc::ptr_eq(&entry.session, &self.session));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut sessions = self.pool.sessions.lock();
        let Some(index) = sessions.iter().position(|entry| Arc::ptr_eq(&entry.session, &self.session)) else { return };
        let Some(entry) = sessions.get_mut(index) else { return };
        entry.users -= 1;
        entry.used = Instant::now();
        let is_over =
            self.is_last || !self.pool.keeps(&entry.purpose.principal) || entry.opened.elapsed() >= self.pool.oldest;
        if entry.users == 0 && is_over {
            let entry = sessions.swap_remove(index);
            drop(sessions);
            self.pool.end(entry.session);
        }
    }
}

#[cfg(test)]
mod tests;
